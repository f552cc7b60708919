import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.TreeSet;
import java.util.stream.Collectors;

import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * Writes, for each subtask, the indexes of the GPUs that Flink hands to it: one file per TaskManager in the folder
 * given as the first argument, named after the TaskManager's PID, one index a line.
 */
public final class ReportGpus {

    private ReportGpus() {}

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment();
        // Rebalanced, so that all subtasks are scheduled together. Otherwise one that ends early leaves its
        // TaskManager's only slot to the next, and another TaskManager gets none.
        environment.fromSequence(1, environment.getParallelism()).rebalance().map(new Reporter(args[0])).print();
        environment.execute("report-gpus");
    }

    /**
     * Reports while its state is initialised: of the hooks that run once in every subtask, whether or not a record
     * comes its way, this is the one that is spelled alike in Flink 1.18 and 2.x.
     */
    private static final class Reporter extends RichMapFunction<Long, Long> implements CheckpointedFunction {

        private static final long serialVersionUID = 1L;

        private final String folder;

        Reporter(String folder) {
            this.folder = folder;
        }

        @Override
        public void initializeState(FunctionInitializationContext context) {
            TreeSet<String> indexes =
                    getRuntimeContext().getExternalResourceInfos("gpu").stream()
                            .map(info -> info.getProperty("index"))
                            .flatMap(Optional::stream)
                            .collect(Collectors.toCollection(TreeSet::new));
            try {
                Files.write(Path.of(folder, String.valueOf(ProcessHandle.current().pid())), indexes);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) {}

        @Override
        public Long map(Long value) {
            return value;
        }
    }
}
