import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;

/**
 * Apache Kafka's error answers. Each line of the input is a request: its API key, its version, an error code, and its
 * body in hexadecimal; each line of the output is the body of the response in hexadecimal, "-" where there is none, and
 * what begins with "!" where Kafka throws something.
 */
public class KafkasErrorAnswers {
    public static void main(String[] arguments) throws Exception {
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            String[] words = line.split(" ", -1);
            try {
                System.out.println(answer(words));
            } catch (Throwable thrown) {
                System.out.println("!" + thrown.toString().replace('\n', ' '));
            }
        }
    }

    private static String answer(String[] words) {
        short version = Short.parseShort(words[1]);
        ByteBuffer body = ByteBuffer.wrap(HexFormat.of().parseHex(words[3]));
        ApiKeys api = ApiKeys.forId(Short.parseShort(words[0]));
        AbstractRequest request = AbstractRequest.parseRequest(api, version, new ByteBufferAccessor(body)).request;
        Throwable error = Errors.forCode(Short.parseShort(words[2])).exception("injected");
        AbstractResponse response = request.getErrorResponse(0, error);
        if (response == null) {
            return "-";
        }
        ByteBuffer answer = MessageUtil.toByteBufferAccessor(response.data(), version).buffer();
        byte[] bytes = new byte[answer.remaining()];
        answer.get(bytes);
        return HexFormat.of().formatHex(bytes);
    }
}
