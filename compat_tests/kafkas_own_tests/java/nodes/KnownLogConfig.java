package nodes;

import kafka.server.KafkaConfig;

import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.DescribeConfigsRequestData;
import org.apache.kafka.common.message.DescribeConfigsRequestData.DescribeConfigsResource;
import org.apache.kafka.common.message.DescribeConfigsResponseData.DescribeConfigsResourceResult;
import org.apache.kafka.common.message.DescribeConfigsResponseData.DescribeConfigsResult;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.DescribeConfigsRequest;
import org.apache.kafka.common.requests.DescribeConfigsResponse;
import org.apache.kafka.common.requests.DescribeConfigsResponse.ConfigSource;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.storage.internals.log.LogConfig;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/** The configuration of logs as the broker on a port describes it: of a topic's, and where a topic says nothing itself. */
final class KnownLogConfig {
    private static final short DESCRIBE_CONFIGS = 4;
    private static final Set<String> OF_BROKER = ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.values().stream()
        .flatMap(List::stream).map(each -> each.name()).collect(Collectors.toSet());

    private KnownLogConfig() { }

    static LogConfig ofTopic(int port, String topic) {
        Map<String, Object> values = new HashMap<>();
        Set<String> own = new HashSet<>();
        for (DescribeConfigsResourceResult entry : describe(port, ConfigResource.Type.TOPIC, topic)) {
            if (entry.value() == null) continue;
            ConfigDef.Type type = LogConfig.configType(entry.name()).orElseThrow();
            values.put(entry.name(), ConfigDef.parseType(entry.name(), entry.value(), type));
            if (entry.configSource() == ConfigSource.TOPIC_CONFIG.id()) own.add(entry.name());
        }
        return new LogConfig(values, own);
    }

    /** properties: what the broker's file says of all else, since a configuration is complete. */
    static LogConfig ofBroker(int port, int id, Map<String, Object> properties) {
        Map<String, Object> values = new HashMap<>(properties);
        values.keySet().removeAll(OF_BROKER);
        for (DescribeConfigsResourceResult entry : describe(port, ConfigResource.Type.BROKER, Integer.toString(id))) {
            if (entry.value() != null && OF_BROKER.contains(entry.name())) values.put(entry.name(), entry.value());
        }
        return new LogConfig(new KafkaConfig(values, false).extractLogConfigMap());
    }

    private static List<DescribeConfigsResourceResult> describe(int port, ConfigResource.Type type, String name) {
        DescribeConfigsResource asked = new DescribeConfigsResource().setResourceType(type.id()).setResourceName(name).setConfigurationKeys(null);
        DescribeConfigsRequestData data = new DescribeConfigsRequestData().setResources(List.of(asked));
        DescribeConfigsResult answer = ((DescribeConfigsResponse) Request.send(port, new DescribeConfigsRequest(data, DESCRIBE_CONFIGS)))
            .data().results().get(0);
        Errors.forCode(answer.errorCode()).maybeThrow();
        return answer.configs();
    }
}
