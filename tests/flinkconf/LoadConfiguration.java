import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
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
import org.apache.flink.runtime.externalresource.ExternalResourceUtils;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;

/**
 * Loads configuration folders as the Flink on the class path does, and says what that Flink makes of them.
 *
 * <p>Each line of standard input is a folder's path as a JSON string; the answer is one line of JSON: {@code settings}
 * (what Flink's code gets for each key as an option of type string), {@code resources} (each external resource and its
 * amount), {@code error} (the exceptions, outermost first) and {@code log} (what Flink logged meanwhile).
 */
public final class LoadConfiguration {

    private static final ByteArrayOutputStream LOG = new ByteArrayOutputStream();

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(new PrintStream(LOG, true, StandardCharsets.UTF_8)); // before Log4j takes hold of it
        BufferedReader folders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        ObjectMapper json = new ObjectMapper();
        for (String line = folders.readLine(); line != null; line = folders.readLine()) {
            answers.println(json.writeValueAsString(load(json.readValue(line, String.class))));
        }
    }

    private static Map<String, Object> load(String folder) {
        Map<String, Object> answer = new TreeMap<>(Map.of("settings", Map.of(), "resources", Map.of(), "error", List.of()));
        LOG.reset();
        try {
            Configuration configuration = GlobalConfiguration.loadConfiguration(folder);
            answer.put("settings", settings(configuration));
            answer.put("resources", resources(configuration));
        } catch (Exception | LinkageError | StackOverflowError exception) {
            answer.put("error", causes(exception));
        }
        answer.put("log", LOG.toString(StandardCharsets.UTF_8));
        return answer;
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
