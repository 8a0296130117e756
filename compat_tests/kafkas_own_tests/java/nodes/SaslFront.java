package nodes;

import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.common.message.SaslAuthenticateRequestData;
import org.apache.kafka.common.message.SaslAuthenticateResponseData;
import org.apache.kafka.common.message.SaslHandshakeRequestData;
import org.apache.kafka.common.message.SaslHandshakeResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.SaslAuthenticateRequest;
import org.apache.kafka.common.requests.SaslAuthenticateResponse;
import org.apache.kafka.common.requests.SaslHandshakeRequest;
import org.apache.kafka.common.requests.SaslHandshakeResponse;

import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;
import java.util.function.Supplier;

/**
 * A PLAINTEXT port before a SASL_PLAINTEXT listener: who connects to it is the user that the front is told of by then.
 *
 * <p>It authenticates before the first request that is no ApiVersions, with OAUTHBEARER's unsecured tokens: they are good
 * for any user, also for one that nobody knew when the node was started. A client that authenticates by itself, as nodes do
 * with each other, is left alone.
 */
final class SaslFront implements AutoCloseable {
    static final String MECHANISM = "OAUTHBEARER";
    private static final long TOKEN_SECONDS = 86_400;

    private final ServerSocket server;
    private final int target;
    private final Supplier<String> user;

    /** user: is asked for each connection. */
    SaslFront(int port, int target, Supplier<String> user) throws IOException {
        this.server = new ServerSocket();
        server.setReuseAddress(true);
        server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
        this.target = target;
        this.user = user;
        inBackground(this::accept);
    }

    @Override
    public void close() throws IOException {
        server.close();
    }

    private interface Work {
        void run() throws IOException;
    }

    private static void inBackground(Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (EOFException | SocketException ended) {
                return;
            } catch (IOException e) {
                System.out.println("front: " + e);
            }
        }, "sasl-front");
        thread.setDaemon(true);
        thread.start();
    }

    private void accept() throws IOException {
        while (true) {
            Socket client = server.accept();
            inBackground(() -> serve(client));
        }
    }

    private void serve(Socket client) throws IOException {
        try (client; Socket broker = new Socket()) {
            broker.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), target));
            client.setTcpNoDelay(true);
            broker.setTcpNoDelay(true);
            byte[] first = begin(client, broker);
            write(broker, first);
            inBackground(() -> copy(broker, client));
            copy(client, broker);
        }
    }

    /** The first request that is no ApiVersions, when the connection is authenticated for it. */
    private byte[] begin(Socket client, Socket broker) throws IOException {
        while (true) {
            byte[] request = read(client);
            short api = request.length < 2 ? -1 : ByteBuffer.wrap(request).getShort();
            if (api == ApiKeys.API_VERSIONS.id) {
                write(broker, request);
                write(client, read(broker));
                continue;
            }
            if (api != ApiKeys.SASL_HANDSHAKE.id) authenticate(broker);
            return request;
        }
    }

    private void authenticate(Socket broker) throws IOException {
        SaslHandshakeResponseData offered = ((SaslHandshakeResponse) ask(broker, new SaslHandshakeRequest(
            new SaslHandshakeRequestData().setMechanism(MECHANISM), (short) 1))).data();
        if (offered.errorCode() != Errors.NONE.code()) throw new IOException("SaslHandshake: " + Errors.forCode(offered.errorCode()));
        byte[] token = ("n,,\1auth=Bearer " + token(user.get()) + "\1\1").getBytes(StandardCharsets.UTF_8);
        SaslAuthenticateResponseData done = ((SaslAuthenticateResponse) ask(broker, new SaslAuthenticateRequest(
            new SaslAuthenticateRequestData().setAuthBytes(token), (short) 2))).data();
        if (done.errorCode() != Errors.NONE.code()) throw new IOException("SaslAuthenticate: " + done.errorMessage());
    }

    private static String token(String user) throws IOException {
        long now = System.currentTimeMillis() / 1000;
        return part(Map.of("alg", "none")) + "." + part(Map.of("sub", user, "iat", now, "exp", now + TOKEN_SECONDS)) + ".";
    }

    private static String part(Map<String, Object> json) throws IOException {
        return Base64.getUrlEncoder().withoutPadding().encodeToString(new ObjectMapper().writeValueAsBytes(json));
    }

    private static AbstractResponse ask(Socket broker, AbstractRequest request) throws IOException {
        RequestHeader header = new RequestHeader(request.apiKey(), request.version(), "front", 1);
        ByteBuffer body = request.serializeWithHeader(header);
        byte[] bytes = new byte[body.remaining()];
        body.get(bytes);
        write(broker, bytes);
        return AbstractResponse.parseResponse(ByteBuffer.wrap(read(broker)), header);
    }

    private static byte[] read(Socket from) throws IOException {
        DataInputStream in = new DataInputStream(from.getInputStream());
        byte[] frame = new byte[in.readInt()];
        in.readFully(frame);
        return frame;
    }

    private static void write(Socket to, byte[] frame) throws IOException {
        to.getOutputStream().write(ByteBuffer.allocate(4 + frame.length).putInt(frame.length).put(frame).array());
    }

    /** Until one side ends; then both do. */
    private static void copy(Socket from, Socket to) throws IOException {
        try (from; to) {
            InputStream in = from.getInputStream();
            OutputStream out = to.getOutputStream();
            byte[] bytes = new byte[65536];
            for (int n = in.read(bytes); n >= 0; n = in.read(bytes)) out.write(bytes, 0, n);
        }
    }
}
