import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import kafka.server.KafkaConfig;

/** Says of each broker key and each value that is given as an argument whether Apache Kafka would start with it and nothing else: key, number of the value, verdict. */
public class Start {
    public static void main(String[] values) {
        List<String> names = new ArrayList<>();
        for (Object name : scala.jdk.javaapi.CollectionConverters.asJava(KafkaConfig.configNames())) names.add((String) name);
        Collections.sort(names);
        for (String name : names) {
            for (int i = 0; i < values.length; i++) {
                Properties p = new Properties();
                p.put("zookeeper.connect", "z:2181");
                p.put("broker.id", "1");
                p.put(name, values[i]);
                String verdict = "ok";
                try {
                    KafkaConfig.fromProps(p, false);
                } catch (RuntimeException e) {
                    verdict = String.valueOf(e.getMessage()).replace('\n', ' ');
                }
                System.out.println(name + "\t" + i + "\t" + verdict);
            }
        }
    }
}
