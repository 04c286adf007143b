package interop

import (
	"regexp"
	"slices"
	"sort"
	"strings"
)

// What may differ from a transcript, and why.

var (
	// of the moment or of chance
	topicIDs  = regexp.MustCompile(`(TopicId: |"topic_id":"|"id":")[A-Za-z0-9_-]{22}`)
	moments   = regexp.MustCompile(`"timestamp":"[0-9]+"`)
	endpoints = regexp.MustCompile(`127\.0\.0\.1:[0-9]+`)
	ports     = regexp.MustCompile(`"port":[0-9]+`)
	arrays    = regexp.MustCompile(`\[I@[0-9a-f]+|\[3\]$`) // a Java array's address in 2.8.2's message
	epochs    = regexp.MustCompile(`"controller_epoch":\d+`)
	elected   = regexp.MustCompile(`"brokerid":\d+`)
	directory = regexp.MustCompile(`"logDir":"[^"]*"`)
	changeNo  = regexp.MustCompile(`^/config/changes/config_change_\d+`)
	logged    = regexp.MustCompile(`(?m)^\[\d{4}-\d\d-\d\d [^]]*\] ERROR .*\n \(.*\)\n`)
	places    = regexp.MustCompile(`(?m)^\s+(at |\.\.\. \d+ ).*\n?`) // in Java's code
	causes    = regexp.MustCompile(`(?s)Caused by: com\.fasterxml.*`)
)

// plain takes out what differs from run to run.
func plain(text string) string {
	text = topicIDs.ReplaceAllString(text, "${1}ID")
	text = moments.ReplaceAllString(text, `"timestamp":"T"`)
	text = endpoints.ReplaceAllString(text, "127.0.0.1:PORT")
	text = ports.ReplaceAllString(text, `"port":PORT`)
	text = directory.ReplaceAllString(text, `"logDir":"DIR"`)
	return arrays.ReplaceAllString(text, "ARRAY")
}

var describedTopic = regexp.MustCompile(`^\t?Topic: __consumer_offsets\t`)

// explainedOutput takes out differences of standard output that are meant. The order of lines is that of Java's maps in the originals, so blocks of lines are sorted.
func (s *scene) explainedOutput(step, text string) string {
	if step == "groups-reset-dry" || step == "groups-reset-shift" {
		text = nextRow.ReplaceAllString(text, "\ng1 orders") // 3.9.1 forgets the ends of these lines
	}
	if step == "groups-delete-offsets" {
		text = nextStatus.ReplaceAllString(text, "\norders $1") // and of these
	}
	text = places.ReplaceAllString(causes.ReplaceAllString(text, ""), "") // our errors have no places in Java's code, and no cause in Java's library for JSON
	var blocks []string
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		line = plain(line)
		switch {
		case line == "__consumer_offsets" || describedTopic.MatchString(line):
			continue // where its replicas are is chance
		case strings.HasPrefix(step, "groups-"):
			if line = inOneForm(line); step == "groups-describe-members" && strings.HasPrefix(line, "GROUP CONSUMER-ID") {
				continue // 3.9.1 prints a heading above nothing
			}
		case step == "console-consume" && line == "":
			continue
		case step == "configs-describe-topic-all" && s.version == "2.8.2":
			// Whatever the protocol between brokers, our topics have the settings of 3.9, and one that has no meaning since 3.0 has the value that 3.9 shows.
			if key, _, _ := strings.Cut(strings.TrimSpace(line), "="); slices.Contains(newerKeys, key) {
				continue
			}
		case strings.HasPrefix(line, "Valid replica already elected for partitions"):
			line = "Valid replica already elected" // 2.8.2 forgets to say which; we say it
		case strings.HasPrefix(line, "Created preferred replica election path with "):
			line = inAnyOrder(line, "with ", ",")
		case strings.HasPrefix(line, "Successfully started preferred replica election for partitions "):
			line = inAnyOrder(strings.TrimSuffix(line, ")"), "(", ", ")
		case strings.HasPrefix(line, "Successfully completed leader election"):
			line = inAnyOrder(line, "partitions ", ", ")
		case strings.HasPrefix(line, `{"`) && step == "log-dirs":
			line = sizes.ReplaceAllString(line, `"size":N`) // how many batches a producer made of the same records, and when
		}
		if strings.HasPrefix(line, "\t") && len(blocks) > 0 && strings.HasPrefix(blocks[len(blocks)-1], "Topic:") {
			blocks[len(blocks)-1] += "\n" + line
		} else {
			blocks = append(blocks, line)
		}
	}
	if step == "reassign-generate" { // the original proposes something else each time; that ours is valid and even has tests of its own
		if at := slices.Index(blocks, "Proposed partition reassignment configuration"); at >= 0 {
			blocks = blocks[:at+1]
		}
	}
	sort.Strings(blocks)
	return strings.Join(blocks, "\n")
}

var (
	sizes     = regexp.MustCompile(`"size":\d+`)
	newerKeys = []string{"compression.gzip.level", "compression.lz4.level", "compression.zstd.level", "local.retention.bytes", "local.retention.ms", "message.timestamp.after.max.ms",
		"message.timestamp.before.max.ms", "remote.log.copy.disable", "remote.log.delete.on.disable", "remote.storage.enable", "message.format.version"}
)

var (
	memberIDs    = regexp.MustCompile(`(consumer-g1-1|console-consumer|kgo)-[0-9a-f-]{36}`)
	coordinators = regexp.MustCompile(`127\.0\.0\.1:PORT \(\d\)`)
	strategies   = regexp.MustCompile(`\b(range|cooperative-sticky)\b`)
	blanks       = regexp.MustCompile(` {2,}`)
	nextStatus   = regexp.MustCompile(` +orders +(\d)`)
	nextRow      = regexp.MustCompile(` +g1 +orders`)
)

// inOneForm takes out of a line about a group how its member calls itself, and with it the widths of columns, which have tests of their own; which broker coordinates; and the line ends that 3.9.1 forgets.
func inOneForm(line string) string {
	line = memberIDs.ReplaceAllString(line, "MEMBER")
	line = strings.NewReplacer("consumer-g1-1", "CLIENT", "console-consumer", "CLIENT", "kgo", "CLIENT").Replace(line)
	line = strategies.ReplaceAllString(line, "STRATEGY") // our consumer has another default
	line = strings.ReplaceAll(line, " orders(", " (")    // 3.9.1 forgets the topic of an assignment
	line = coordinators.ReplaceAllString(blanks.ReplaceAllString(line, " "), "COORDINATOR")
	return strings.TrimRight(line, " ")
}

// inAnyOrder sorts the list after a word, and leaves out the topic that is not there.
func inAnyOrder(line, word, separator string) string {
	head, list, _ := strings.Cut(line, word)
	items := slices.DeleteFunc(strings.Split(list, separator), func(item string) bool { return strings.HasPrefix(item, "__consumer_offsets-") })
	sort.Strings(items)
	return head + word + strings.Join(items, separator)
}

// explainedError takes out differences of standard error that are meant.
func explainedError(text string) string {
	text = places.ReplaceAllString(text, "")
	if before, _, ok := strings.Cut(text, "\nOption "); ok {
		text = before // our help has its own words
	}
	// Our brokers answer what those of 3.9 answer.
	text = strings.ReplaceAll(text, "Invalid config value for resource ConfigResource(type=BROKER, name='1'): Cannot update", "Cannot update")
	text = logged.ReplaceAllString(text, "") // those were recorded without a configuration of logging, which has these lines
	var lines []string
	for _, line := range strings.Split(plain(text), "\n") {
		if strings.HasPrefix(line, "The proposal: ") || strings.HasPrefix(line, "Nothing has to move") {
			continue // what a proposal costs is said beside it
		}
		if strings.HasPrefix(line, "WARN: No action will be performed") {
			continue // left out when the transcripts were recorded
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// explainedTree takes out differences of the tree that are meant.
func explainedTree(text string) string {
	var lines []string
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		line = plain(line)
		node, _, _ := strings.Cut(line, "\t")
		switch {
		case strings.Contains(node, "/__consumer_offsets"):
			continue // where its replicas are is chance
		case node == "/controller": // whatever the protocol version between brokers, we write what Kafka 3.9 writes; who is elected is chance
			line = strings.Replace(strings.Replace(line, `"version":2`, `"version":1`, 1), `,"kraftControllerEpoch":-1`, "", 1)
			line = elected.ReplaceAllString(line, `"brokerid":B`)
		case node == "/controller_epoch": // grows when the broker that is stopped happens to be the controller
			line = node
		case node == "/latest_producer_id_block": // Kafka 2.8 takes a block at each start, we do when the first producer asks
			line = node
		case changeNo.MatchString(node):
			line = changeNo.ReplaceAllString(line, "/config/changes/N") // each broker notes its own settings: their order is chance
		case strings.HasPrefix(node, "/config/users/") && strings.Contains(line, "SCRAM"):
			line = node
		case strings.HasPrefix(node, "/config/"):
			line = sortedSettings(line)
		}
		lines = append(lines, epochs.ReplaceAllString(line, `"controller_epoch":E`))
	}
	return strings.Join(lines, "\n")
}

var settingsOf = regexp.MustCompile(`"config":\{(.*)\}\}$`)

// sortedSettings brings the settings of a node into an order: the originals' is that of a hash table.
func sortedSettings(line string) string {
	m := settingsOf.FindStringSubmatch(line)
	if m == nil || m[1] == "" {
		return line
	}
	items := strings.Split(m[1], `","`)
	for i := range items {
		items[i] = strings.Trim(items[i], `"`)
	}
	sort.Strings(items)
	return strings.Replace(line, m[1], strings.Join(items, ` `), 1)
}

// treeDifferences compares trees; the first was recorded while those brokers were still starting.
func treeDifferences(step, want, got string) []string {
	diff := differences(want, got)
	if step == "znodes-fresh" {
		diff = slices.DeleteFunc(diff, func(d string) bool {
			return regexp.MustCompile(`^surplus: /(controller|controller_epoch|feature|brokers/ids/\d)(\t|$)`).MatchString(d)
		})
	}
	return diff
}
