import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Sends records of each codec through one release's producer: bootstrap, topic, name of the client, records, codecs. */
public class Ages {
  public static void main(String[] args) throws Exception {
    for (int c = 4; c < args.length; c++) {
      Properties p = new Properties();
      p.put("bootstrap.servers", args[0]);
      p.put("compression.type", args[c]);
      p.put("acks", "all");
      p.put("linger.ms", "20");
      p.put("max.in.flight.requests.per.connection", "1");
      p.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
      p.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
      try (KafkaProducer<String, String> producer = new KafkaProducer<String, String>(p)) {
        java.util.concurrent.Future<?> last = null;
        for (int i = 0; i < Integer.parseInt(args[3]); i++)
          last = producer.send(new ProducerRecord<String, String>(args[1], 0, args[2] + "-" + args[c] + "-" + i, "value " + i));
        last.get();
      }
    }
  }
}
