import java.io.FileInputStream;
import java.io.InputStream;
import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindows;

/**
 * An application of Kafka Streams. Orders have a number as their key and a product as their value; payments have an order's number. It tells, of each product, how often it was sold until now
 * (topic counts) and once in each minute (topic minutes, told when the minute is over for good), and which order was paid (topic paid). Its argument is a file of settings.
 */
public class Sales {
    /** How late an order or a payment may be. */
    private static final Duration LATE = Duration.ofHours(1);

    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        try (InputStream in = new FileInputStream(args[0])) {
            settings.load(in);
        }
        KafkaStreams app = new KafkaStreams(topology(), settings);
        app.setUncaughtExceptionHandler(e -> {
            e.printStackTrace();
            Runtime.getRuntime().halt(1);
            return null;
        });
        Runtime.getRuntime().addShutdownHook(new Thread(app::close));
        app.start();
    }

    private static Topology topology() {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> orders = builder.stream("orders");
        KStream<String, String> payments = builder.stream("payments");

        KStream<String, String> byProduct = orders.map((order, product) -> KeyValue.pair(product, order))
            .repartition(Repartitioned.<String, String>as("by-product").withNumberOfPartitions(3));
        byProduct.groupByKey().count(Materialized.as("counts"))
            .toStream().mapValues(String::valueOf).to("counts");
        byProduct.groupByKey(Grouped.with(Serdes.String(), Serdes.String())) // from which the windows' keys know how they are written
            .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMinutes(1), LATE)).count(Materialized.as("minutes"))
            .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()).withName("closed"))
            .toStream((window, sold) -> window.key() + "@" + window.window().start()).mapValues(String::valueOf).to("minutes");
        orders.join(payments, (product, payment) -> product + " " + payment, JoinWindows.ofTimeDifferenceAndGrace(LATE, LATE),
            StreamJoined.with(Serdes.String(), Serdes.String(), Serdes.String()).withName("paid").withStoreName("paid")).to("paid");
        return builder.build();
    }
}
