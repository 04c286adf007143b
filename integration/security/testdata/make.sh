#!/bin/sh
# Makes the key stores beside it, by keytool (JDK 17) and openssl: an authority, a broker at 127.0.0.1 and localhost, and a client.
# The password of everything is sesame1.
set -e
cd "$(dirname "$0")"
rm -f *.jks *.p12 *.pem
P=sesame1
for who in ca broker client; do
  keytool -genkeypair -alias $who -keyalg EC -groupname secp256r1 -validity 36500 -dname "CN=$who,OU=Tests,O=Barnabas\\, the broker,C=AQ" \
    $( [ $who = ca ] && echo "-ext bc:c" ) -storetype JKS -keystore $who.jks -storepass $P -keypass $P 2>/dev/null
done
keytool -exportcert -rfc -alias ca -keystore ca.jks -storepass $P -file ca.pem 2>/dev/null
for who in broker client; do
  keytool -certreq -alias $who -keystore $who.jks -storepass $P 2>/dev/null |
    keytool -gencert -rfc -alias ca -keystore ca.jks -storepass $P -validity 36500 -ext san=ip:127.0.0.1,dns:localhost 2>/dev/null > $who.crt
  keytool -importcert -noprompt -alias ca -file ca.pem -keystore $who.jks -storepass $P 2>/dev/null
  keytool -importcert -noprompt -alias $who -file $who.crt -keystore $who.jks -storepass $P 2>/dev/null
  keytool -delete -alias ca -keystore $who.jks -storepass $P 2>/dev/null
  keytool -importkeystore -srckeystore $who.jks -srcstoretype JKS -srcstorepass $P -destkeystore $who.p12 -deststoretype PKCS12 -deststorepass $P 2>/dev/null
  openssl pkcs12 -in $who.p12 -passin pass:$P -nodes -nocerts 2>/dev/null | openssl pkcs8 -topk8 -nocrypt > $who.key
  # Kafka on Java 17 reads no newer cipher than the broker's.
  openssl pkcs8 -topk8 $( [ $who = broker ] && echo "-v1 PBE-SHA1-3DES" ) -in $who.key -passout pass:$P -out $who.encrypted
  cat $who.encrypted $who.crt ca.pem > $who.pem
  rm $who.encrypted $who.crt
done
mv broker.key broker-key.pem && mv client.key client-key.pem
for type in JKS PKCS12; do
  file=trust.$( [ $type = JKS ] && echo jks || echo p12 )
  keytool -importcert -noprompt -alias ca -file ca.pem -storetype $type -keystore $file -storepass $P 2>/dev/null
done
rm ca.jks
