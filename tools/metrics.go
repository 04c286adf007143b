package tools

import "fmt"

// metric is a figure of a client under the name that the originals give it: group and metric, separated by a colon.
type metric struct {
	name  string
	value float64
}

// printMetrics prints the table of --print-metrics.
func (f face) printMetrics(client string, metrics []metric) {
	width := 0
	names := make([]string, len(metrics))
	for i, m := range metrics {
		names[i] = fmt.Sprintf("%s:{client-id=%s}", m.name, client)
		width = max(width, len(names[i]))
	}
	fmt.Fprintf(f.stdout, "\n%-*s   %s\n", width, "Metric Name", "Value")
	for i, m := range metrics {
		fmt.Fprintf(f.stdout, "%-*s : %.3f\n", width, names[i], m.value)
	}
}
