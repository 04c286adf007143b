package admin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/zkstate"
)

// CreateTopics creates topics, or only says whether it would. Each is judged by itself; names that stand twice in one
// request are the caller's to refuse.
//
// What is wrong is reported in Kafka's order: that the topic exists, null values, counts beside an assignment, counts,
// the name, what is marked for deletion, names that collide, the assignment, the configuration. As in Kafka, an
// assignment may name brokers that do not exist: they may be on their way.
func (a *Admin) CreateTopics(ctx context.Context, specs []TopicSpec, validateOnly bool) []TopicResult {
	brokers, err := a.Brokers(ctx)
	var values brokerValues
	if err == nil {
		values, err = a.brokerValues(ctx)
	}
	results := make([]TopicResult, len(specs))
	for i, spec := range specs {
		results[i].Name = spec.Name
		if err == nil {
			results[i] = a.createTopic(ctx, spec, brokers, values, validateOnly)
		} else {
			results[i].Err = err
		}
		results[i].Err = unavailable(results[i].Err)
	}
	return results
}

func (a *Admin) createTopic(ctx context.Context, spec TopicSpec, brokers []BrokerRack, values brokerValues, validateOnly bool) TopicResult {
	fail := func(err error) TopicResult { return TopicResult{Name: spec.Name, Err: err} }
	if ValidateTopicName(spec.Name) == nil { // a bad name may not even be a path
		if err := a.refuseExisting(ctx, spec.Name); err != nil {
			return fail(err)
		}
	}
	assignment, err := a.assignmentFor(spec, brokers)
	if err != nil {
		return fail(err)
	}
	if err := a.validateTopic(ctx, spec, assignment); err != nil {
		return fail(err)
	}
	configs, order := configMap(spec.Configs)
	result := TopicResult{Name: spec.Name, NumPartitions: int32(len(assignment)), ReplicationFactor: int16(len(assignment[0])),
		Configs: a.describeTopic(configs, values, DescribeOptions{})}
	if validateOnly {
		return result
	}
	if err := spec.Permit.ask(len(assignment)); err != nil {
		return fail(err)
	}
	id, err := a.writeTopic(ctx, spec.Name, assignment, configs, order)
	if err != nil {
		return fail(err)
	}
	result.ID = id
	return result
}

func existsAlready(name string) error {
	return failed(kerr.TopicAlreadyExists, "Topic '%s' already exists.", name)
}

func (a *Admin) refuseExisting(ctx context.Context, name string) error {
	there, err := a.exists(ctx, zkstate.TopicPath(name))
	if err == nil && there {
		err = existsAlready(name)
	}
	return err
}

// assignmentFor is the assignment given, or one that is worked out.
func (a *Admin) assignmentFor(spec TopicSpec, brokers []BrokerRack) (map[int32][]int32, error) {
	var nulls []string
	for _, c := range spec.Configs {
		if c.Value == nil {
			nulls = append(nulls, c.Name)
		}
	}
	if len(nulls) > 0 {
		return nil, failed(kerr.InvalidConfig, "Null value not supported for topic configs: %s", strings.Join(nulls, ","))
	}
	if len(spec.Assignment) > 0 {
		if spec.Partitions != -1 || spec.ReplicationFactor != -1 {
			return nil, failed(kerr.InvalidRequest, "Both numPartitions or replicationFactor and replicasAssignments were set. Both cannot be used at the same time.")
		}
		return spec.Assignment, nil
	}
	partitions, replicas := spec.Partitions, spec.ReplicationFactor
	if partitions == -1 {
		partitions = a.cfg.DefaultPartitions
	}
	if replicas == -1 {
		replicas = a.cfg.DefaultReplicationFactor
	}
	var start AssignmentStart
	if len(brokers) > 0 {
		start = AssignmentStart{Index: a.cfg.Intn(len(brokers)), Shift: a.cfg.Intn(len(brokers))}
	}
	return AssignReplicas(brokers, int(partitions), int(replicas), 0, start)
}

func (a *Admin) validateTopic(ctx context.Context, spec TopicSpec, assignment map[int32][]int32) error {
	if err := ValidateTopicName(spec.Name); err != nil {
		return err
	}
	marked, err := a.exists(ctx, zkstate.DeleteTopicPath(spec.Name))
	if err != nil {
		return err
	}
	if marked {
		return failed(kerr.TopicAlreadyExists, "Topic '%s' is marked for deletion.", spec.Name)
	}
	if err := a.refuseCollision(ctx, spec.Name); err != nil {
		return err
	}
	if err := validateAssignment(assignment); err != nil {
		return err
	}
	return a.validateTopicConfig(spec.Configs)
}

func (a *Admin) refuseCollision(ctx context.Context, name string) error {
	if !mayCollide(name) {
		return nil
	}
	r, err := a.zk.One(ctx, zkstate.Children(zkstate.TopicsPath))
	if err != nil && !errors.Is(err, zkstate.ErrNoNode) {
		return err
	}
	var colliding []string
	for _, other := range r.Children {
		if other == name {
			return existsAlready(name)
		}
		if collide(name, other) {
			colliding = append(colliding, other)
		}
	}
	if len(colliding) > 0 {
		slices.Sort(colliding)
		return failed(kerr.InvalidTopicException, "Topic '%s' collides with existing topics: %s", name, strings.Join(colliding, ", "))
	}
	return nil
}

// validateAssignment judges the shape of a whole topic's assignment.
func validateAssignment(assignment map[int32][]int32) error {
	partitions := sortedPartitions(assignment)
	for _, p := range partitions {
		if len(assignment[p]) != len(assignment[partitions[0]]) {
			return failed(kerr.InvalidReplicaAssignment, "All partitions should have the same number of replicas")
		}
	}
	for _, p := range partitions {
		if duplicate(assignment[p]) {
			return failed(kerr.InvalidReplicaAssignment, "Duplicate replica assignment found: %s", showAssignment(partitions, assignment))
		}
	}
	for i, p := range partitions {
		if p != int32(i) {
			return failed(kerr.InvalidReplicaAssignment, "partitions should be a consecutive 0-based integer sequence")
		}
	}
	if len(partitions) == 0 || len(assignment[0]) == 0 {
		// Kafka takes this and the controller then finds a partition that can have no leader.
		return failed(kerr.InvalidReplicaAssignment, "Partitions should have at least one replica")
	}
	return nil
}

func sortedPartitions(assignment map[int32][]int32) []int32 {
	partitions := make([]int32, 0, len(assignment))
	for p := range assignment {
		partitions = append(partitions, p)
	}
	slices.Sort(partitions)
	return partitions
}

func duplicate(ids []int32) bool {
	sorted := slices.Clone(ids)
	slices.Sort(sorted)
	return len(slices.Compact(sorted)) != len(ids)
}

// showAssignment writes an assignment as Scala prints the map.
func showAssignment(partitions []int32, assignment map[int32][]int32) string {
	parts := make([]string, len(partitions))
	for i, p := range partitions {
		parts[i] = fmt.Sprintf("%d -> ArrayBuffer(%s)", p, joinIDs(assignment[p], ", "))
	}
	return "HashMap(" + strings.Join(parts, ", ") + ")"
}

func joinIDs(ids []int32, separator string) string {
	parts := make([]string, len(ids))
	for i, id := range ids {
		parts[i] = fmt.Sprint(id)
	}
	return strings.Join(parts, separator)
}

// writeTopic writes configuration and assignment as one multi: brokers that learn of the topic find its configuration,
// and a topic that somebody else creates at the same moment keeps its own.
func (a *Admin) writeTopic(ctx context.Context, name string, assignment map[int32][]int32, configs map[string]string, order []string) (id zkstate.TopicID, err error) {
	node := zkstate.TopicAssignment{Version: 3, Partitions: make(map[int32]zkstate.ReplicaAssignment, len(assignment))}
	for p, replicas := range assignment {
		node.Partitions[p] = zkstate.ReplicaAssignment{Replicas: replicas}
	}
	if a.cfg.TopicIDs {
		node.ID = newTopicID()
	}
	data, configData := node.Encode(), zkstate.EntityConfig(configs).Encode(order...)
	configPath := zkstate.EntityPath(zkstate.TopicEntity, name)
	for {
		leftover, err := a.exists(ctx, configPath)
		if err != nil {
			return id, err
		}
		config := zkstate.Create(configPath, configData)
		if leftover {
			config = zkstate.Set(configPath, configData, zkstate.AnyVersion)
		}
		results, err := a.zk.Multi(ctx, []zkstate.Op{config, zkstate.Create(zkstate.TopicPath(name), data)})
		switch {
		case err == nil:
			return node.ID, nil
		case errors.Is(err, zkstate.ErrConnectionLoss) && ctx.Err() == nil:
			if a.isWritten(ctx, name, data) {
				return node.ID, nil
			}
		case errors.Is(err, zkstate.ErrTooLarge):
			return id, failed(kerr.InvalidPartitions, "The assignment of %d partitions does not fit in one ZooKeeper node.", len(assignment))
		case len(results) == 2 && errors.Is(results[1].Err, zkstate.ErrNodeExists):
			return id, existsAlready(name)
		case errors.Is(err, zkstate.ErrNodeExists), errors.Is(err, zkstate.ErrNoNode) && leftover:
			// The configuration came or went meanwhile.
		case errors.Is(err, zkstate.ErrNoNode):
			if err := a.zk.MakePersistentPaths(ctx); err != nil {
				return id, err
			}
		default:
			return id, err
		}
	}
}

// isWritten tells whether the multi whose answer was lost took effect. With topic ids nobody else can have written the
// same bytes; without them it makes no difference who did.
func (a *Admin) isWritten(ctx context.Context, name string, data []byte) bool {
	r, err := a.zk.One(ctx, zkstate.Get(zkstate.TopicPath(name)))
	return err == nil && string(r.Data) == string(data)
}

// newTopicID makes a random topic id. It never begins with '-', which command lines take for an option, and is none
// of the two ids that Kafka reserves.
func newTopicID() zkstate.TopicID {
	for {
		var id zkstate.TopicID
		_, _ = rand.Read(id[:]) // never fails: crypto/rand ends the program instead
		id[6] = id[6]&0x0f | 0x40
		id[8] = id[8]&0x3f | 0x80
		if id.String()[0] != '-' {
			return id
		}
	}
}

// DeleteTopics marks topics for deletion; the controller deletes them.
func (a *Admin) DeleteTopics(ctx context.Context, names []string) []DeleteResult {
	results := make([]DeleteResult, len(names))
	for i, name := range names {
		already, err := a.deleteTopic(ctx, name)
		results[i] = DeleteResult{Name: name, Already: already, Err: unavailable(err)}
	}
	return results
}

func (a *Admin) deleteTopic(ctx context.Context, name string) (already bool, err error) {
	if !a.cfg.DeleteTopics {
		return false, failed(kerr.TopicDeletionDisabled, "Topic deletion is disabled.")
	}
	unknown := failed(kerr.UnknownTopicOrPartition, "Topic `%s` to delete does not exist", name)
	if ValidateTopicName(name) != nil {
		return false, unknown
	}
	there, err := a.exists(ctx, zkstate.TopicPath(name))
	if err != nil {
		return false, err
	}
	if !there {
		return false, unknown
	}
	for {
		_, err := a.zk.One(ctx, zkstate.Create(zkstate.DeleteTopicPath(name), nil))
		switch {
		case err == nil:
			return already, nil
		case errors.Is(err, zkstate.ErrNodeExists):
			return true, nil
		case errors.Is(err, zkstate.ErrConnectionLoss) && ctx.Err() == nil:
		case errors.Is(err, zkstate.ErrNoNode):
			if err := a.zk.CreateRecursive(ctx, zkstate.DeleteTopicsPath, nil); err != nil {
				return false, err
			}
		default:
			return false, err
		}
	}
}
