"""Sends lines of standard input as key, tab, value records, or prints records so: confluent-kafka (librdkafka)."""
import sys

from confluent_kafka import Consumer, Producer, TopicPartition

mode, bootstrap, topic = sys.argv[1:4]
if mode == "produce":
    failed = []
    p = Producer({"bootstrap.servers": bootstrap, "compression.type": sys.argv[4], "acks": "all", "linger.ms": 20, "enable.idempotence": True,
                  "queue.buffering.max.messages": 1000000})
    for line in sys.stdin.buffer:
        key, _, value = line.rstrip(b"\n").partition(b"\t")
        while True:
            try:
                p.produce(topic, key=key, value=value, partition=0, on_delivery=lambda err, _: err and failed.append(err))
                break
            except BufferError:
                p.poll(0.1)
        p.poll(0)
    p.flush()
    if failed:
        sys.exit(str(failed[0]))
else:
    n = int(sys.argv[4])
    c = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False, "auto.offset.reset": "earliest"})
    c.assign([TopicPartition(topic, 0, 0)])
    out = sys.stdout.buffer
    seen = 0
    while seen < n:
        batch = c.consume(10000, timeout=20)
        if not batch:
            break
        for m in batch:
            if m.error():
                sys.exit(str(m.error()))
            out.write(m.key() + b"\t" + (m.value() or b"") + b"\n")
            seen += 1
    c.close()
