package nodes;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.UserScramCredentialsDescription;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.errors.ResourceNotFoundException;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.security.authenticator.CredentialCache;
import org.apache.kafka.common.security.scram.ScramCredential;
import org.apache.kafka.common.security.token.delegation.DelegationToken;
import org.apache.kafka.common.security.token.delegation.internals.DelegationTokenCache;
import org.apache.kafka.security.CredentialProvider;
import org.apache.kafka.server.authorizer.AclCreateResult;
import org.apache.kafka.server.authorizer.AclDeleteResult;
import org.apache.kafka.server.authorizer.AclDeleteResult.AclBindingDeleteResult;
import org.apache.kafka.server.authorizer.Authorizer;

import java.lang.reflect.Field;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.function.Predicate;

/** The ACLs, users and delegation tokens that the broker on a port tells a super user of. */
final class KnownSecurity {
    private final int port;

    KnownSecurity(int port) {
        this.port = port;
    }

    @SuppressWarnings("unchecked")
    Plugin<Authorizer> authorizerPlugin() {
        Authorizer authorizer = Stand.in(Authorizer.class, Map.of(
            "acls", a -> ask(admin -> admin.describeAcls((AclBindingFilter) a[0]).values()),
            "createAcls", a -> ((List<AclBinding>) a[1]).stream().map(this::created).toList(),
            "deleteAcls", a -> ((List<AclBindingFilter>) a[1]).stream().map(this::deleted).toList()));
        return Stand.in(Plugin.class, Map.of("get", a -> authorizer));
    }

    private CompletableFuture<AclCreateResult> created(AclBinding binding) {
        ask(admin -> admin.createAcls(List.of(binding)).all());
        return CompletableFuture.completedFuture(AclCreateResult.SUCCESS);
    }

    private CompletableFuture<AclDeleteResult> deleted(AclBindingFilter filter) {
        return CompletableFuture.completedFuture(new AclDeleteResult(
            ask(admin -> admin.deleteAcls(List.of(filter)).all()).stream().map(AclBindingDeleteResult::new).toList()));
    }

    /** isKnown: of a token's id, whether it is told of. */
    DelegationTokenCache tokenCache(Predicate<String> isKnown) {
        return Stand.in(DelegationTokenCache.class, Map.of("tokens", a -> ask(admin ->
            admin.describeDelegationToken().delegationTokens()).stream().map(DelegationToken::tokenInfo)
            .filter(token -> isKnown.test(token.tokenId())).toList()));
    }

    /** Whether there is a credential for a user and a mechanism; nobody tells its keys. */
    CredentialProvider credentialProvider() {
        CredentialCache cache = Stand.in(CredentialCache.class, Map.of("cache", a -> Stand.in(CredentialCache.Cache.class,
            Map.of("get", b -> hasCredential((String) b[0], (String) a[0]) ? Stand.in(ScramCredential.class, Map.of()) : null))));
        CredentialProvider provider = Stand.in(CredentialProvider.class, Map.of());
        try {
            Field field = CredentialProvider.class.getField("credentialCache");
            field.setAccessible(true);
            field.set(provider, cache);
        } catch (ReflectiveOperationException e) {
            throw new RuntimeException(e);
        }
        return provider;
    }

    private boolean hasCredential(String user, String mechanism) {
        try {
            UserScramCredentialsDescription told = ask(admin -> admin.describeUserScramCredentials(List.of(user)).description(user));
            return told.credentialInfos().stream().anyMatch(info -> info.mechanism().mechanismName().equals(mechanism));
        } catch (ResourceNotFoundException none) {
            return false;
        }
    }

    interface Question<T> {
        KafkaFuture<T> of(Admin admin);
    }

    <T> T ask(Question<T> question) {
        try (Admin admin = Admin.create(Map.of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, "localhost:" + port))) {
            return question.of(admin).get();
        } catch (InterruptedException e) {
            throw new RuntimeException(e);
        } catch (ExecutionException e) {
            throw e.getCause() instanceof RuntimeException cause ? cause : new RuntimeException(e.getCause());
        }
    }
}
