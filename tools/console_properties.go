package tools

import (
	"strings"

	"barnabas/tools/options"
)

// consoleProperties are what the console tools are told of how records are read and printed.
type consoleProperties map[string]string

// readConsoleProperties reads them from the file that an option names; those of --property count before it.
func readConsoleProperties(set *options.Set, option string) (consoleProperties, error) {
	file, err := set.Value(option)
	if err != nil {
		return nil, err
	}
	return readSettings(file, set.Values("property"))
}

func (p consoleProperties) get(name, def string) string {
	if v, ok := p[name]; ok {
		return v
	}
	return def
}

func (p consoleProperties) truth(name string, def bool) bool {
	if v, ok := p[name]; ok {
		return strings.EqualFold(strings.TrimSpace(v), "true")
	}
	return def
}
