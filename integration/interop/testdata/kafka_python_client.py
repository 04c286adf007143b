"""Sends lines of standard input as key, tab, value records, or prints records so: kafka-python."""
import sys

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

mode, bootstrap, topic = sys.argv[1:4]
if mode == "produce":
    codec = None if sys.argv[4] == "none" else sys.argv[4]
    p = KafkaProducer(bootstrap_servers=bootstrap.split(","), compression_type=codec, acks="all", linger_ms=20, batch_size=1 << 18,
                      max_in_flight_requests_per_connection=1, retries=5)
    failed = []
    for line in sys.stdin.buffer:
        key, _, value = line.rstrip(b"\n").partition(b"\t")
        p.send(topic, key=key, value=value, partition=0).add_errback(failed.append)
    p.flush()
    p.close()
    if failed:
        sys.exit(str(failed[0]))
else:
    n = int(sys.argv[4])
    c = KafkaConsumer(bootstrap_servers=bootstrap.split(","), auto_offset_reset="earliest", enable_auto_commit=False, group_id=None,
                      consumer_timeout_ms=20000, max_partition_fetch_bytes=8 << 20)
    c.assign([TopicPartition(topic, 0)])
    c.seek(TopicPartition(topic, 0), 0)
    out = sys.stdout.buffer
    seen = 0
    for m in c:
        out.write(m.key + b"\t" + (m.value or b"") + b"\n")
        seen += 1
        if seen == n:
            break
    c.close()
