// Opens the log of one partition as Apache Kafka 3.9 does and cleans it once with Kafka's own cleaner. Prints the offset up
// to which the log is clean, and the milliseconds that the cleaning took.
//
// Arguments: directory, time of the cleaning (ms), first dirty offset, segment.bytes, delete.retention.ms, bytes of the offset map.

import java.io.File;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.*;
import org.apache.kafka.storage.internals.utils.Throttler;

import kafka.log.*;
import kafka.server.BrokerTopicStats;
import scala.Option;
import scala.Tuple2;
import scala.runtime.BoxedUnit;

public class Clean {
    public static void main(String[] args) throws Exception {
        Map<String, String> settings = new HashMap<>();
        settings.put("cleanup.policy", "compact");
        settings.put("segment.bytes", args[3]);
        settings.put("delete.retention.ms", args[4]);
        settings.put("file.delete.delay.ms", "0");
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        File dir = new File(args[0]);
        UnifiedLog log = UnifiedLog.apply(dir, new LogConfig(settings), 0L, 0L, scheduler, new BrokerTopicStats(false), Time.SYSTEM,
            900000, new ProducerStateManagerConfig(Integer.MAX_VALUE, false), 600000, new LogDirFailureChannel(1), true,
            Option.empty(), false, new ConcurrentHashMap<>(), false, LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
        log.updateHighWatermark(log.logEndOffset());
        Cleaner cleaner = new Cleaner(0, new SkimpyOffsetMap(Integer.parseInt(args[5])), 512 << 10, 1 << 20, 0.9,
            new Throttler(Double.MAX_VALUE, 300, "cleaner-io", "bytes", Time.SYSTEM), Time.SYSTEM, tp -> BoxedUnit.UNIT);
        TopicPartition tp = log.topicPartition();
        long uncleanable = Math.min(log.lastStableOffset(), log.activeSegment().baseOffset());
        long began = System.nanoTime();
        Tuple2<Object, CleanerStats> done = cleaner.doClean(new LogToClean(tp, log, Long.parseLong(args[2]), uncleanable, false), Long.parseLong(args[1]));
        long took = (System.nanoTime() - began) / 1000000;
        log.close();
        scheduler.shutdown();
        System.out.println("clean to " + done._1() + " in " + took + " ms");
    }
}
