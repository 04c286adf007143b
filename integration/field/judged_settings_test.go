package field

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// valuesOf are values of every size and kind for a setting of a type.
func valuesOf(setting kmsg.DescribeConfigsResponseResourceConfig) []string {
	var more string
	switch setting.ConfigType {
	case kmsg.ConfigTypeBoolean:
		more = "true|FALSE|yes| true "
	case kmsg.ConfigTypeInt, kmsg.ConfigTypeLong, kmsg.ConfigTypeShort:
		more = "-3|-2|-1|0|1|2|4|13|16|17|21|1024|1048576|2147483647|2147483648|9223372036854775808|abc| 7 |+7|1.0|0x10"
	case kmsg.ConfigTypeDouble:
		more = "-1|0.5|1|1.5|NaN|1e400|inf|0.5d|1_0|abc"
	case kmsg.ConfigTypeList:
		more = "a,b|delete|compact,delete|compact,compact|delete,|,|*|0:1|0:x|0:1,"
	default:
		more = "x|producer|gzip|LogAppendTime|createtime|2.8|4.0|REQUIRED|127.0.0.1:5"
	}
	return append(strings.Split(more, "|"), value(setting.Value), "")
}

// judgement is what a broker says of a change that it is only to judge.
type judgement struct {
	Code    int16
	Message string
}

func judged(c *conn, kind kmsg.ConfigResourceType, name, key string, op kmsg.IncrementalAlterConfigOp, to string) judgement {
	c.t.Helper()
	req := at(1, kmsg.NewPtrIncrementalAlterConfigsRequest())
	req.ValidateOnly = true
	req.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{ResourceType: kind, ResourceName: name, Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{change(key, op, to)}}}
	got := ask[*kmsg.IncrementalAlterConfigsResponse](c, req).Resources[0]
	return judgement{got.ErrorCode, strings.ReplaceAll(value(got.ErrorMessage), "'"+name+"'", "'NAME'")}
}

// settingsOf are the settings of a resource that may change while the broker runs.
func settingsOf(c *conn, kind kmsg.ConfigResourceType, name string) (dynamic []kmsg.DescribeConfigsResponseResourceConfig) {
	req := at(4, kmsg.NewPtrDescribeConfigsRequest())
	req.IncludeSynonyms, req.IncludeDocumentation = true, false
	req.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kind, ResourceName: name}}
	for _, setting := range ask[*kmsg.DescribeConfigsResponse](c, req).Resources[0].Configs {
		if !setting.ReadOnly {
			dynamic = append(dynamic, setting)
		}
	}
	return dynamic
}

// ownWords are settings whose refusal Barnabas gives a reason of its own, since Kafka's is an accident ("begin 0, end -1, length 3", "/ by zero"), or speaks of Java classes.
var ownWords = []string{"advertised.listeners", "listener.security.protocol.map", "max.connections.per.ip.overrides", "log.cleaner.threads"}

// judgedOtherwise are settings that name Java classes, passwords that are asked for a secret earlier than Kafka asks, limits of tiered storage, and listeners: Kafka takes some that it then cannot open, or that it publishes where nothing listens.
var judgedOtherwise = []string{"listeners", "metric.reporters", "principal.builder.class", "ssl.engine.factory.class", "sasl.jaas.config", "log.local.retention.ms", "log.local.retention.bytes"}

// BR-058, BR-074: every setting that may change while a broker runs, of topics, of the broker and of all brokers, is taken or refused as by Apache Kafka, in its words.
func TestEverySettingIsJudgedAsByApacheKafka(t *testing.T) {
	needApache(t)
	mine, theirs := dial(t, ours().Brokers[0].Addr), dial(t, apache().Brokers[0].Addr)
	myTopic, theirTopic := newTopic(t, ours().Brokers[0].Addr, 1), newTopic(t, apache().Brokers[0].Addr, 1)
	asked := 0
	for _, of := range []struct {
		kind       kmsg.ConfigResourceType
		mine, them string
		like       string // whose settings are taken
	}{
		{kmsg.ConfigResourceTypeTopic, myTopic, theirTopic, theirTopic},
		{kmsg.ConfigResourceTypeBroker, "1", "1", "1"},
		{kmsg.ConfigResourceTypeBroker, "", "", "1"},
	} {
		for _, setting := range settingsOf(theirs, of.kind, of.like) {
			if slices.Contains(judgedOtherwise, setting.Name) {
				continue
			}
			for _, to := range valuesOf(setting) {
				for _, op := range []kmsg.IncrementalAlterConfigOp{kmsg.IncrementalAlterConfigOpSet, kmsg.IncrementalAlterConfigOpAppend, kmsg.IncrementalAlterConfigOpSubtract} {
					asked++
					want, got := judged(theirs, of.kind, of.them, setting.Name, op, to), judged(mine, of.kind, of.mine, setting.Name, op, to)
					if slices.Contains(ownWords, setting.Name) && want.Code != 0 {
						want.Message, got.Message = "", ""
					}
					assert.Equal(t, want, got, "%v of %v %q, operation %v: %s=%q", setting.ConfigType, of.kind, of.mine, op, setting.Name, to)
				}
			}
		}
	}
	assert.Greater(t, asked, 3000)
}

// BR-058: a setting that is set to what it is already comes from another place, with the same synonyms, as by Apache Kafka; when it is taken back all is as before.
func TestWhereEverySettingComesFromIsToldAsByApacheKafka(t *testing.T) {
	needApache(t)
	alter := func(c *conn, kind kmsg.ConfigResourceType, name string, op kmsg.IncrementalAlterConfigOp, settings []kmsg.DescribeConfigsResponseResourceConfig) {
		req := at(1, kmsg.NewPtrIncrementalAlterConfigsRequest())
		of := kmsg.IncrementalAlterConfigsRequestResource{ResourceType: kind, ResourceName: name}
		for _, setting := range settings {
			of.Configs = append(of.Configs, change(setting.Name, op, value(setting.Value)))
		}
		req.Resources = append(req.Resources, of)
		got := ask[*kmsg.IncrementalAlterConfigsResponse](c, req).Resources[0]
		require.Zero(c.t, got.ErrorCode, value(got.ErrorMessage))
	}
	for what, of := range map[string]struct {
		kind               kmsg.ConfigResourceType
		resource, describe string
	}{
		"topic": {kind: kmsg.ConfigResourceTypeTopic}, "broker": {kmsg.ConfigResourceTypeBroker, "1", "1"}, "all brokers": {kmsg.ConfigResourceTypeBroker, "", "1"},
	} {
		t.Run(what, func(t *testing.T) {
			told := func(addr string) (during, after []kmsg.DescribeConfigsResponseResourceConfig) {
				c, resource, describe := dial(t, addr), of.resource, of.describe
				if of.kind == kmsg.ConfigResourceTypeTopic {
					resource = newTopic(t, addr, 1)
					describe = resource
				}
				settings := slices.DeleteFunc(settingsOf(c, of.kind, describe), func(s kmsg.DescribeConfigsResponseResourceConfig) bool {
					return s.IsSensitive || s.Value == nil || strings.HasPrefix(s.Name, "ssl.") || strings.HasPrefix(s.Name, "sasl.") || strings.Contains(s.Name, "listener") || strings.HasPrefix(s.Name, "remote.") ||
						slices.Contains(judgedOtherwise, s.Name)
				})
				require.Greater(t, len(settings), 20)
				alter(c, of.kind, resource, kmsg.IncrementalAlterConfigOpSet, settings)
				set := func() bool {
					during = settingsOf(c, of.kind, describe)
					return slices.ContainsFunc(during, func(s kmsg.DescribeConfigsResponseResourceConfig) bool {
						return s.Name == settings[0].Name && s.Source != settings[0].Source
					})
				}
				eventually(t, set, "the settings of %s are told", what)
				alter(c, of.kind, resource, kmsg.IncrementalAlterConfigOpDelete, settings)
				gone := func() bool {
					after = settingsOf(c, of.kind, describe)
					return slices.ContainsFunc(after, func(s kmsg.DescribeConfigsResponseResourceConfig) bool {
						return s.Name == settings[0].Name && s.Source == settings[0].Source
					})
				}
				eventually(t, gone, "the settings of %s are taken back", what)
				return during, after
			}
			during, after := told(ours().Brokers[0].Addr)
			duringThere, afterThere := told(apache().Brokers[0].Addr)
			same(t, duringThere, during)
			same(t, afterThere, after)
		})
	}
}

// same compares settings by name, but for those that hold addresses of one run.
func same(t *testing.T, want, got []kmsg.DescribeConfigsResponseResourceConfig) {
	t.Helper()
	byName := map[string]kmsg.DescribeConfigsResponseResourceConfig{}
	for _, setting := range got {
		byName[setting.Name] = setting
	}
	require.Len(t, got, len(want))
	for _, setting := range want {
		if !strings.Contains(setting.Name, "listeners") {
			assert.Equal(t, setting, byName[setting.Name], setting.Name)
		}
	}
}
