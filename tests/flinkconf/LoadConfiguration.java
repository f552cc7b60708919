import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import org.apache.flink.api.common.resources.ExternalResource;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.GlobalConfiguration;
import org.apache.flink.runtime.clusterframework.BootstrapTools;
import org.apache.flink.runtime.externalresource.ExternalResourceUtils;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.core.type.TypeReference;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;

/**
 * Loads configurations as the Flink on the class path does, and says what that Flink makes of them.
 *
 * <p>Each line of standard input is a JSON object: {@code folder}, the path of one to load, or {@code settings}, a map of
 * texts; and perhaps {@code write}, the path of a file to write them to as Flink's clients do for YARN and Kubernetes. The
 * answer is one line of JSON: {@code settings} (what Flink's code gets for each key as an option of type string),
 * {@code resources} (each external resource and its amount), {@code error} (the exceptions, outermost first) and
 * {@code log} (what Flink logged meanwhile).
 */
public final class LoadConfiguration {

    private static final ByteArrayOutputStream LOG = new ByteArrayOutputStream();
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(new PrintStream(LOG, true, StandardCharsets.UTF_8)); // before Log4j takes hold of it
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            answers.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
        }
    }

    private static Map<String, Object> answer(JsonNode request) {
        Map<String, Object> answer = new TreeMap<>(Map.of("settings", Map.of(), "resources", Map.of(), "error", List.of()));
        LOG.reset();
        try {
            Configuration configuration = load(request);
            if (request.has("write")) {
                BootstrapTools.writeConfiguration(configuration, new File(request.get("write").asText()));
            }
            answer.put("settings", settings(configuration));
            answer.put("resources", resources(configuration));
        } catch (Exception | LinkageError | StackOverflowError exception) {
            answer.put("error", causes(exception));
        }
        answer.put("log", LOG.toString(StandardCharsets.UTF_8));
        return answer;
    }

    private static Configuration load(JsonNode request) {
        if (request.has("folder")) {
            return GlobalConfiguration.loadConfiguration(request.get("folder").asText());
        }
        return Configuration.fromMap(JSON.convertValue(request.get("settings"), new TypeReference<Map<String, String>>() {}));
    }

    private static Map<String, String> settings(Configuration configuration) {
        return configuration.keySet().stream()
                .collect(Collectors.toMap(key -> key, key -> configuration.getString(key, null)));
    }

    private static Map<String, String> resources(Configuration configuration) {
        return ExternalResourceUtils.getExternalResourcesCollection(configuration).stream()
                .collect(Collectors.toMap(ExternalResource::getName, each -> each.getValue().toPlainString()));
    }

    private static List<String> causes(Throwable exception) {
        return Stream.iterate(exception, each -> each != null, Throwable::getCause)
                .map(Throwable::toString)
                .collect(Collectors.toList());
    }
}
