// All pages of the console, one line each. path: with its parameters as ":name"; module: has a function `show(view)`;
// navigation: the link's text on top, for pages that have one. Pages of one thing have tabs: tab is the text of one, of the
// path of the first. The first line that fits an address is shown.

export const VIEWS = [
  { path: "/", navigation: "Overview", module: "./views/overview.js" },

  // topics and their records
  { path: "/topics", navigation: "Topics", module: "./views/topics.js" },
  { path: "/topics/:name", tab: "Partitions and configs", of: "/topics/:name", module: "./views/topic.js" },
  { path: "/topics/:name/records", tab: "Records", of: "/topics/:name", module: "./views/records.js" },
  { path: "/topics/:name/tail", tab: "Live", of: "/topics/:name", module: "./views/tail.js" },
  { path: "/topics/:name/records/:partition/:offset", module: "./views/record.js" },

  // groups
  { path: "/groups", navigation: "Groups", module: "./views/groups.js" },
  { path: "/groups/group", module: "./views/group.js" },
  { path: "/groups/share", module: "./views/share_group.js" },
  { path: "/groups/streams", module: "./views/streams_group.js" },

  // the cluster
  { path: "/cluster", navigation: "Cluster", module: "./views/cluster.js" },
  { path: "/configs", navigation: "Configs", module: "./views/configs.js" },

  // transactions and producers
  { path: "/transactions", navigation: "Transactions", module: "./views/transactions.js" },
  { path: "/transactions/transaction", module: "./views/transaction.js" },
  { path: "/topics/:name/producers", tab: "Producers", of: "/topics/:name", module: "./views/producers.js" },

  // users and rights
  { path: "/users", navigation: "Users", module: "./views/users.js" },
  { path: "/acls", navigation: "ACLs", module: "./views/acls.js" },
  { path: "/quotas", navigation: "Quotas", module: "./views/quotas.js" },
];
