"""MODULE BOOTSTRAP TOPIC MECHANISM: makes a topic, writes three records, reads them as a member of a group of the same name and finds it among the groups.
What is proven comes by the environment: ROUND_USER and ROUND_SECRET with a mechanism (of OAUTHBEARER the secret is a token), ROUND_CA, ROUND_CERTIFICATE and ROUND_KEY with encryption."""
import os
import sys
import time

module, bootstrap, topic, mechanism = sys.argv[1:5]
user, secret, ca = (os.environ.get("ROUND_" + name, "") for name in ("USER", "SECRET", "CA"))
certificate, key = os.environ.get("ROUND_CERTIFICATE"), os.environ.get("ROUND_KEY")
protocol = ("SASL_" if mechanism else "") + ("SSL" if ca else "PLAINTEXT")
records = 3
deadline = time.time() + 120


def kafka():
    from kafka import KafkaConsumer, KafkaProducer
    from kafka.admin import KafkaAdminClient, NewTopic

    common = {"bootstrap_servers": bootstrap, "security_protocol": protocol}
    if mechanism:
        common.update(sasl_mechanism=mechanism)
        if mechanism == "OAUTHBEARER":
            from kafka.net.sasl.oauth import AbstractTokenProvider

            provider = type("Provider", (AbstractTokenProvider,), {"token": lambda _: secret})
            common.update(sasl_oauth_token_provider=provider())
        else:
            common.update(sasl_plain_username=user, sasl_plain_password=secret)
    if ca:
        common.update(ssl_cafile=ca, ssl_certfile=certificate, ssl_keyfile=key)
    admin = KafkaAdminClient(**common)
    admin.create_topics([NewTopic(topic, 1, 1)])
    producer = KafkaProducer(**common)
    for _ in range(records):
        producer.send(topic, b"hello").get(60)
    producer.close()
    consumer = KafkaConsumer(topic, group_id=topic, auto_offset_reset="earliest", **common)
    read = 0
    while read < records and time.time() < deadline:
        read += sum(len(batch) for batch in consumer.poll(1000).values())
    consumer.commit()
    groups = str(admin.list_groups())
    consumer.close()
    admin.close()
    return read, groups


def confluent_kafka():
    from confluent_kafka import Consumer, Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    common = {"bootstrap.servers": bootstrap, "security.protocol": protocol}
    if mechanism:
        common.update({"sasl.mechanism": mechanism})
        if mechanism == "OAUTHBEARER":
            common.update({"oauth_cb": lambda _: (secret, time.time() + 3600)})
        else:
            common.update({"sasl.username": user, "sasl.password": secret})
    if ca:
        common.update({"ssl.ca.location": ca, "ssl.certificate.location": certificate, "ssl.key.location": key})
    admin = AdminClient(common)
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(60)
    producer = Producer(common)
    for _ in range(records):
        producer.produce(topic, b"hello")
    left = producer.flush(60)
    consumer = Consumer({"group.id": topic, "auto.offset.reset": "earliest", **common})
    consumer.subscribe([topic])
    read = -left
    while read < records and time.time() < deadline:
        message = consumer.poll(1)
        if message is not None and not message.error():
            read += 1
    consumer.commit(asynchronous=False)
    groups = " ".join(group.group_id for group in admin.list_consumer_groups().result(60).valid)
    consumer.close()
    return read, groups


read, groups = {"kafka": kafka, "confluent_kafka": confluent_kafka}[module]()
if read != records or topic not in groups:
    sys.exit(f"{read} of {records} records, groups {groups}")
