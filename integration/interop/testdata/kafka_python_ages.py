"""kafka-python held to an old protocol. produce BOOTSTRAP TOPIC API NAME N CODEC..: sends N records in each codec; consume BOOTSTRAP TOPIC API N: prints N as key, tab, value."""
import sys

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

mode, bootstrap, topic, api = sys.argv[1:5]
version = tuple(int(part) for part in api.split("."))
if mode == "produce":
    name, n, codecs = sys.argv[5], int(sys.argv[6]), sys.argv[7:]
    for codec in codecs:
        p = KafkaProducer(bootstrap_servers=bootstrap, api_version=version, compression_type=None if codec == "none" else codec, acks="all", linger_ms=20,
                          max_in_flight_requests_per_connection=1, retries=0)
        sent = [p.send(topic, key=b"%s-%s-%d" % (name.encode(), codec.encode(), i), value=b"value %d" % i, partition=0) for i in range(n)]
        p.flush(timeout=30)
        for f in sent:
            f.get(timeout=30)
        p.close()
else:
    n = int(sys.argv[5])
    c = KafkaConsumer(bootstrap_servers=bootstrap, api_version=version, enable_auto_commit=False, group_id=None, consumer_timeout_ms=20000)
    c.assign([TopicPartition(topic, 0)])
    c.seek(TopicPartition(topic, 0), 0)
    seen = 0
    for m in c:
        sys.stdout.buffer.write(m.key + b"\t" + m.value + b"\n")
        seen += 1
        if seen == n:
            break
    c.close()
