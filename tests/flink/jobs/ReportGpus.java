import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
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
 * given as the first argument, named after the TaskManager's PID, one index a line. Further arguments are device nodes
 * that it tries to open: each makes a line with the node, a tab, and the system's word for what that came to.
 */
public final class ReportGpus {

    private ReportGpus() {}

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment();
        // Rebalanced, so that all subtasks are scheduled together. Otherwise one that ends early leaves its
        // TaskManager's only slot to the next, and another TaskManager gets none.
        environment.fromSequence(1, environment.getParallelism()).rebalance().map(new Reporter(args)).print();
        environment.execute("report-gpus");
    }

    /**
     * Reports while its state is initialised: of the hooks that run once in every subtask, whether or not a record
     * comes its way, this is the one that is spelled alike in Flink 1.18 and 2.x.
     */
    private static final class Reporter extends RichMapFunction<Long, Long> implements CheckpointedFunction {

        private static final long serialVersionUID = 1L;

        private final String folder;
        private final String[] nodes;

        Reporter(String[] args) {
            this.folder = args[0];
            this.nodes = Arrays.copyOfRange(args, 1, args.length);
        }

        @Override
        public void initializeState(FunctionInitializationContext context) {
            TreeSet<String> indexes =
                    getRuntimeContext().getExternalResourceInfos("gpu").stream()
                            .map(info -> info.getProperty("index"))
                            .flatMap(Optional::stream)
                            .collect(Collectors.toCollection(TreeSet::new));
            List<String> lines = new ArrayList<>(indexes);
            try {
                for (String node : nodes) {
                    lines.add(node + "\t" + open(node));
                }
                Files.write(Path.of(folder, String.valueOf(ProcessHandle.current().pid())), lines);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        /** Opens for reading and writing, as CUDA does. */
        private static String open(String node) throws IOException {
            try {
                FileChannel.open(Path.of(node), StandardOpenOption.READ, StandardOpenOption.WRITE).close();
                return "opened";
            } catch (FileSystemException e) {
                return String.valueOf(e.getReason());
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
