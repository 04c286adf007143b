// Package lane tells a test whether the foreign programs that it needs are on this machine.
//
// A newcomer's `go test ./...` skips what cannot run there and says so. With BARNABAS_REQUIRE=1, as in
// continuous integration, the same skip is a failure, so a lane can never pass by not running.
package lane

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Required tells whether a missing program fails a test instead of skipping it.
func Required() bool { return os.Getenv("BARNABAS_REQUIRE") == "1" }

// Need skips t (or fails it, when lanes are required) unless ok holds; what names the missing thing.
func Need(t testing.TB, ok bool, what string) {
	t.Helper()
	if ok {
		return
	}
	if Required() {
		t.Fatalf("this lane needs %s, and BARNABAS_REQUIRE=1 forbids to skip it", what)
	}
	t.Skipf("not run: needs %s", what)
}

// Program returns the path of an executable that the test needs.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	Need(t, err == nil, name)
	return path
}

// Java returns the path of a Java runtime.
func Java(t testing.TB) string {
	t.Helper()
	return Program(t, "java")
}

// KafkaJars returns the folder that holds the jars of one Apache Kafka version: $BARNABAS_KAFKA_JARS/VERSION/lib,
// or kafka-jars/VERSION/lib in the folder for temporary files.
func KafkaJars(t testing.TB, version string) string {
	t.Helper()
	root := os.Getenv("BARNABAS_KAFKA_JARS")
	if root == "" {
		root = filepath.Join(os.TempDir(), "kafka-jars")
	}
	lib := filepath.Join(root, version, "lib")
	_, err := os.Stat(lib)
	Need(t, err == nil, "the jars of Apache Kafka "+version+" in "+lib)
	return lib
}
