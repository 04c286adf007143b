package tools

import (
	"fmt"
	"strings"

	"barnabas/config"
)

// metadataVersion is the feature whose levels have the names of releases (KIP-778). Clusters on ZooKeeper do not have it.
const metadataVersion = "metadata.version"

// metadataVersions are the names of its levels, from 1 on.
var metadataVersions = []string{"3.0-IV1", "3.1-IV0", "3.2-IV0", "3.3-IV0", "3.3-IV1", "3.3-IV2", "3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2",
	"3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0"}

// firstToStart is the lowest level that a cluster can be started with.
const firstToStart = 4

// metadataLevel is the level of a name. That of a release alone, such as 3.3 or 3.3.2, is its last.
func metadataLevel(name string) (int16, error) {
	release, step, _ := strings.Cut(name, "-")
	if parts := strings.SplitN(release, ".", 3); len(parts) == 3 && step == "" {
		release = parts[0] + "." + parts[1]
	}
	level := int16(0)
	for i, known := range metadataVersions {
		if known == name || step == "" && strings.HasPrefix(known, release+"-") {
			level = int16(i) + 1
		}
	}
	if _, err := config.ParseProtocolVersion(name); level == 0 && err == nil { // from before there were levels
		return 0, &badArgument{"Cannot specify a negative version level."}
	}
	if level == 0 {
		return 0, &badArgument{fmt.Sprintf("Unsupported metadata.version %s. Supported metadata.version are %s", name, strings.Join(metadataVersions[firstToStart-1:], ", "))}
	}
	return level, nil
}

// levelName is a feature's level as it is shown.
func levelName(feature string, level int16) string {
	switch {
	case feature != metadataVersion:
		return fmt.Sprint(level)
	case level < 1 || int(level) > len(metadataVersions):
		return fmt.Sprintf("UNKNOWN %d", level)
	}
	return metadataVersions[level-1]
}
