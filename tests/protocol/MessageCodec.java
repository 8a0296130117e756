import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;

/**
 * Messages of Kafka's generated classes, encoded and decoded: a line of the input is a task.
 *
 * "encode CLASS VERSION JSON" is answered by "=" and the bytes in base64; "decode CLASS VERSION BASE64" by "=", the
 * message's JSON, a tab, and the bytes that the class writes of it. What fails is answered by "!" and the exception.
 */
public class MessageCodec {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split(" ", 4);
            try {
                out.print("=" + answer(parts[0], parts[1], Short.parseShort(parts[2]), parts[3]) + "\n");
            } catch (InvocationTargetException error) {
                out.print("!" + oneLine(error.getCause()) + "\n");
            } catch (Exception error) {
                out.print("!" + oneLine(error) + "\n");
            }
        }
        out.flush();
    }

    private static String answer(String task, String name, short version, String content) throws Exception {
        Class<?> converter = Class.forName(name + "JsonConverter");
        if (task.equals("encode")) {
            Method read = converter.getMethod("read", JsonNode.class, short.class);
            return encoded((Message) read.invoke(null, MAPPER.readTree(content), version), version);
        }
        Message message = (Message) Class.forName(name).getConstructor().newInstance();
        ByteBuffer bytes = ByteBuffer.wrap(Base64.getDecoder().decode(content));
        message.read(new ByteBufferAccessor(bytes), version);
        if (bytes.hasRemaining()) {
            throw new IllegalStateException(bytes.remaining() + " bytes are left");
        }
        Method write = converter.getMethod("write", message.getClass(), short.class, boolean.class);
        return MAPPER.writeValueAsString(write.invoke(null, message, version, false)) + "\t" + encoded(message, version);
    }

    private static String encoded(Message message, short version) {
        ByteBuffer bytes = MessageUtil.toByteBufferAccessor(message, version).buffer();
        byte[] array = new byte[bytes.remaining()];
        bytes.duplicate().get(array);
        return Base64.getEncoder().encodeToString(array);
    }

    private static String oneLine(Throwable error) {
        return String.valueOf(error).replace('\n', ' ').replace('\r', ' ');
    }
}
