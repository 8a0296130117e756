package nodes;

import org.apache.kafka.common.message.ApiVersionsRequestData;
import org.apache.kafka.common.message.MetadataRequestData;
import org.apache.kafka.common.message.MetadataRequestData.MetadataRequestTopic;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.ApiVersionsRequest;
import org.apache.kafka.common.requests.ApiVersionsResponse;
import org.apache.kafka.common.requests.MetadataRequest;
import org.apache.kafka.common.requests.MetadataResponse;
import org.apache.kafka.common.requests.RequestHeader;

import java.io.DataInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.List;

/** One request to one broker on a connection of its own: what this very broker knows, and not any other. */
final class Request {
    private static final int CONNECT_MS = 10_000;
    private static final int ANSWER_MS = 30_000;

    private Request() { }

    /** topics: null asks for all. */
    static MetadataResponse metadata(int port, List<String> topics) {
        MetadataRequestData data = new MetadataRequestData().setAllowAutoTopicCreation(false);
        data.setTopics(topics == null ? null : topics.stream().map(t -> new MetadataRequestTopic().setName(t)).toList());
        return (MetadataResponse) send(port, new MetadataRequest(data, (short) 12));
    }

    static ApiVersionsResponse apiVersions(int port) {
        ApiVersionsRequestData data = new ApiVersionsRequestData().setClientSoftwareName("tests").setClientSoftwareVersion("1");
        return (ApiVersionsResponse) send(port, new ApiVersionsRequest(data, ApiKeys.API_VERSIONS.latestVersion()));
    }

    static AbstractResponse send(int port, AbstractRequest request) {
        RequestHeader header = new RequestHeader(request.apiKey(), request.version(), "tests", 7);
        ByteBuffer body = request.serializeWithHeader(header);
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress("localhost", port), CONNECT_MS);
            socket.setSoTimeout(ANSWER_MS);
            socket.getOutputStream().write(ByteBuffer.allocate(4 + body.remaining()).putInt(body.remaining()).put(body).array());
            DataInputStream in = new DataInputStream(socket.getInputStream());
            byte[] answer = in.readNBytes(in.readInt());
            return AbstractResponse.parseResponse(ByteBuffer.wrap(answer), header);
        } catch (IOException e) {
            throw new UncheckedIOException(request.apiKey() + " to port " + port, e);
        }
    }
}
