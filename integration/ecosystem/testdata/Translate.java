import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

/** Asks a cluster that MirrorMaker writes to what it knows of another: address, the other's name, a group there. */
public class Translate {
    public static void main(String[] args) throws Exception {
        Map<String, Object> cluster = Map.of("bootstrap.servers", args[0]);
        System.out.println("clusters " + RemoteClusterUtils.upstreamClusters(cluster));
        System.out.println("hops " + RemoteClusterUtils.replicationHops(cluster, args[1]));
        System.out.println("checkpoints " + RemoteClusterUtils.checkpointTopics(cluster));
        Map<String, Long> offsets = new TreeMap<>();
        for (Map.Entry<TopicPartition, OffsetAndMetadata> e : RemoteClusterUtils.translateOffsets(cluster, args[1], args[2], Duration.ofMinutes(1)).entrySet()) {
            offsets.put(e.getKey().toString(), e.getValue().offset());
        }
        System.out.println("offsets " + offsets);
    }
}
