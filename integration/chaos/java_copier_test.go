package chaos

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"barnabas/integration/history"
	"barnabas/integration/lane"
)

const (
	javaPerTransaction = 200
	javaPause          = 2 * time.Second // between two runs, since a start takes most of what a run costs
	javaStuck          = time.Minute     // a run that is not over by then says so by what it leaves undone
)

// javaCopiers are runs of Apache Kafka's TransactionalMessageCopier, which aborts a third of its transactions.
func javaCopiers(t testing.TB) library {
	java, jars := lane.Java(t), lane.KafkaJars(t, "3.9.1")
	return library{topic: "copied-by-java", copiers: 1, verbatim: true, run: func(c *copiers, number uint32) {
		for c.ctx.Err() == nil {
			c.troubled(c.runJava(java, jars, number))
			select {
			case <-c.ctx.Done():
			case <-time.After(javaPause):
			}
		}
	}}
}

// runJava is one run of a copier, which ends by itself when it has copied what was there when it was given its partitions. One in four is killed, whatever it does just then: its successor
// waits until the group has given it up, and ends what it had begun.
func (c *copiers) runJava(java, jars string, number uint32) error {
	limit := javaStuck
	if rand.IntN(4) == 0 {
		limit = rand.N(5 * time.Second)
	}
	ctx, cancel := context.WithTimeout(c.ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, java, "-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-cp", jars+"/*", "org.apache.kafka.tools.TransactionalMessageCopier",
		"--broker-list", strings.Join(c.w.Seeds(), ","), "--input-topic", loaded, "--input-partition", "0", "--output-topic", c.name, "--consumer-group", c.name, "--group-mode", "--use-group-metadata",
		"--transactional-id", c.id(number), "--transaction-size", strconv.Itoa(javaPerTransaction), "--transaction-timeout", strconv.FormatInt(transactionTimeout.Milliseconds(), 10),
		"--enable-random-aborts")
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	lane.Bind(cmd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	c.hearJava(bufio.NewScanner(out), number)
	err = cmd.Wait()
	switch {
	case err == nil || c.ctx.Err() != nil:
		return nil
	case ctx.Err() != nil:
		return errors.New("killed")
	}
	return fmt.Errorf("%w: %s", err, exception(complaints.String()))
}

// hearJava notes the transactions that a copier says are committed: each time that it has processed more.
func (c *copiers) hearJava(lines *bufio.Scanner, number uint32) {
	for processed := 0; lines.Scan(); {
		var said struct {
			Processed int `json:"totalProcessed"`
		}
		if json.Unmarshal(lines.Bytes(), &said) == nil && said.Processed > processed {
			processed = said.Processed
			c.mu.Lock()
			c.transactions = append(c.transactions, history.Transaction{ID: c.id(number), Fate: history.Done})
			c.mu.Unlock()
		}
	}
}

// exception is the name of the last exception in a stack trace.
func exception(trace string) (name string) {
	for line := range strings.Lines(trace) {
		for _, word := range strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == ':' || r == '\n' }) {
			if strings.HasSuffix(word, "Exception") {
				name = word
			}
		}
	}
	return name
}
