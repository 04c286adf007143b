// Package ssl makes TLS configurations of Kafka's ssl.* settings, for brokers, their connections to each other, and clients: key
// stores as Java has them (JKS, PKCS12) or in PEM (KIP-651), protocol versions and cipher suites by Java's names, and the names of
// principals in certificates (KIP-371).
package ssl
