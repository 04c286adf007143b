package tools

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

// reassignmentFile is what --reassignment-json-file says, in the order of the file.
type reassignmentFile struct {
	partitions []plan.Partition
	replicas   [][]int32
	dirs       map[cluster.Replica]string // of those that are to be in a certain directory
}

func (f reassignmentFile) targets() plan.Assignment {
	a := plan.Assignment{}
	for i, p := range f.partitions {
		a[p] = f.replicas[i]
	}
	return a
}

// topics lists the topics of the partitions, sorted.
func (f reassignmentFile) topics() []string {
	var names []string
	for _, p := range f.partitions {
		names = append(names, p.Topic)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// checkVersion refuses files of a version that is not known; without one it is 1.
func checkVersion(file jsonValue) error {
	v, there, err := file.field("version")
	if err != nil || !there {
		return err
	}
	n, err := v.integer(math.MinInt32, math.MaxInt32)
	if err == nil && n != 1 {
		err = &operationFailed{fmt.Sprintf("Not supported version field value %d", n)}
	}
	return err
}

func readReassignment(file jsonValue) (reassignmentFile, error) {
	f := reassignmentFile{dirs: map[cluster.Replica]string{}}
	if err := checkVersion(file); err != nil {
		return f, err
	}
	field, there, err := file.field("partitions")
	if err != nil || !there {
		return f, err
	}
	list, err := field.list()
	if err != nil {
		return f, err
	}
	for _, item := range list {
		p, err := readPartition(item)
		if err != nil {
			return f, err
		}
		replicas, dirs, err := readReplicas(item, p)
		if err != nil {
			return f, err
		}
		f.partitions, f.replicas = append(f.partitions, p), append(f.replicas, replicas)
		for i, dir := range dirs {
			if dir != plan.AnyDir {
				f.dirs[cluster.Replica{Partition: p, Broker: replicas[i]}] = dir
			}
		}
	}
	return f, nil
}

func readReplicas(item jsonValue, p plan.Partition) (replicas []int32, dirs []string, err error) {
	field, err := item.need("replicas")
	if err != nil {
		return nil, nil, err
	}
	list, err := field.list()
	if err != nil {
		return nil, nil, err
	}
	for _, v := range list {
		id, err := v.id()
		if err != nil {
			return nil, nil, err
		}
		replicas = append(replicas, id)
	}
	field, there, err := item.field("log_dirs")
	if err != nil || !there {
		return replicas, nil, err
	}
	if list, err = field.list(); err != nil {
		return nil, nil, err
	}
	for _, v := range list {
		dir, err := v.text()
		if err != nil {
			return nil, nil, err
		}
		dirs = append(dirs, dir)
	}
	if len(dirs) != len(replicas) {
		return nil, nil, &commandFailed{fmt.Sprintf("Size of replicas list %s is different from size of log dirs list %s for partition %v", scalaList(ids(replicas)), scalaList(dirs), p)}
	}
	return replicas, dirs, nil
}

// scalaList is how each release of the originals shows a list.
func scalaList(items []string) string {
	if compat39() {
		return "[" + strings.Join(items, ", ") + "]"
	}
	return "Buffer(" + strings.Join(items, ", ") + ")"
}

func ids(list []int32) []string {
	out := make([]string, len(list))
	for i, id := range list {
		out[i] = strconv.Itoa(int(id))
	}
	return out
}

// readReassignmentToExecute also refuses what cannot be carried out.
func readReassignmentToExecute(file jsonValue) (reassignmentFile, error) {
	f, err := readReassignment(file)
	switch {
	case err != nil:
		return f, err
	case len(f.partitions) == 0:
		return f, &commandFailed{"Partition reassignment list cannot be empty"}
	}
	for i, p := range f.partitions {
		if len(f.replicas[i]) == 0 {
			return f, &commandFailed{fmt.Sprintf("Partition replica list cannot be empty: %v", p)}
		}
	}
	if twice := duplicates(f.partitions); len(twice) > 0 {
		return f, &commandFailed{"Partition reassignment contains duplicate topic partitions: " + joinPartitions(twice, ",")}
	}
	var repeated []string
	for i, p := range f.partitions {
		if twice := duplicates(f.replicas[i]); len(twice) > 0 {
			repeated = append(repeated, fmt.Sprintf("%v contains multiple entries for %s", p, joinInts(twice)))
		}
	}
	if repeated != nil {
		return f, &commandFailed{"Partition replica lists may not contain duplicate entries: " + strings.Join(repeated, ". ")}
	}
	return f, nil
}

// duplicates lists what is in a list more than once.
func duplicates[T comparable](list []T) []T {
	times := map[T]int{}
	var twice []T
	for _, item := range list {
		if times[item]++; times[item] == 2 {
			twice = append(twice, item)
		}
	}
	return twice
}

// readTopicsToMove reads which topics --generate is for.
func readTopicsToMove(file jsonValue) ([]string, error) {
	if err := checkVersion(file); err != nil {
		return nil, err
	}
	field, there, err := file.field("topics")
	if err != nil || !there {
		return nil, err
	}
	list, err := field.list()
	if err != nil {
		return nil, err
	}
	var topics []string
	for _, item := range list {
		v, err := item.need("topic")
		if err != nil {
			return nil, err
		}
		name, err := v.text()
		if err != nil {
			return nil, err
		}
		topics = append(topics, name)
	}
	if twice := duplicates(topics); len(twice) > 0 {
		return nil, &commandFailed{"List of topics to reassign contains duplicate entries: " + strings.Join(twice, ",")}
	}
	return topics, nil
}

// readBrokerList reads 1,2,3.
func readBrokerList(text string) ([]int32, error) {
	var list []int32
	for _, part := range strings.Split(text, ",") {
		n, err := strconv.ParseInt(part, 10, 32)
		if err != nil || n < 0 {
			return nil, &badArgument{fmt.Sprintf("For input string: \"%s\"", part)}
		}
		list = append(list, int32(n))
	}
	if twice := duplicates(list); len(twice) > 0 {
		return nil, &commandFailed{"Broker list contains duplicate entries: " + joinInts(twice)}
	}
	return list, nil
}

// reassignmentJSON writes an assignment in the form that --reassignment-json-file reads.
func reassignmentJSON(a plan.Assignment) string { return string(plainJSON(a.File())) }

// ReadReassignment reads a file as --execute does. Moves between directories of one broker are refused: that is for kafka-reassign-partitions.
func ReadReassignment(path string) (plan.Assignment, error) {
	file, err := readJSONFile(path)
	if err != nil {
		return nil, err
	}
	asked, err := readReassignmentToExecute(file)
	if err == nil && len(asked.dirs) > 0 {
		err = errors.New("the file names log directories: kafka-reassign-partitions moves replicas between those")
	}
	return asked.targets(), err
}
