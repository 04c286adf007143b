package tools

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
	"barnabas/zkstate"
)

func runConfigs(args ...string) ran {
	return runCommand(func(args []string, out, errs *bytes.Buffer) int { return Configs(args, nil, out, errs) }, args...)
}

func TestSettingsAreSplitOutsideOfBrackets(t *testing.T) {
	for text, want := range map[string][]setting{
		"a=1":                                  {{"a", "1"}},
		"a=1,b = 2":                            {{"a", "1"}, {"b", "2"}},
		"a=[1,2,3],b=4":                        {{"a", "1,2,3"}, {"b", "4"}},
		"S=[iterations=4096,password=a],b=[c]": {{"S", "iterations=4096,password=a"}, {"b", "c"}},
		"a=":                                   {{"a", ""}},
		"a=1,a=2":                              {{"a", "2"}},
	} {
		got, err := parseSettings(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"a", "a=1,b", "a=1=2", "password=a=b"} {
		_, err := parseSettings(text)
		assert.ErrorContains(t, err, "all configs to be added must be in the format", text)
	}
}

func TestNamesBelongToTypesInTheOrderGiven(t *testing.T) {
	set := parsed(t, configsOptions, "--zookeeper", "z", "--describe", "--entity-type", "users", "--entity-default", "--entity-type", "clients", "--entity-name", "app")
	a, err := readConfigsCall(set)
	require.NoError(t, err)
	assert.Equal(t, []string{"users", "clients"}, a.types)
	assert.Equal(t, []string{"", "app"}, a.names)

	set = parsed(t, configsOptions, "--bootstrap-server", "b", "--describe", "--client", "app", "--user-defaults")
	a, err = readConfigsCall(set)
	require.NoError(t, err)
	assert.Equal(t, []string{"clients", "users"}, a.types)
	assert.Equal(t, []string{"app", ""}, a.names)
}

func TestConfigsRefusesCallsThatMakeNoSense(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--bootstrap-server", "b", "--entity-type", "topics"}, "Command must include exactly one action: --describe, --alter"},
		{[]string{"--bootstrap-server", "b", "--describe", "--add-config", "a=b"}, `Option "[describe]" can't be used with option "[add-config]"`},
		{[]string{"--bootstrap-server", "b", "--describe"}, "At least one entity type must be specified"},
		{[]string{"--bootstrap-server", "b", "--describe", "--entity-type", "nosuch"}, "Invalid entity type nosuch, the entity type must be one of topics,clients,users,brokers,ips,broker-loggers with the --bootstrap-server argument"},
		{[]string{"--bootstrap-server", "b", "--describe", "--topic", "t", "--broker", "1"}, "Only 'users' and 'clients' entity types may be specified together"},
		{[]string{"--bootstrap-server", "b", "--describe", "--entity-type", "topics", "--entity-type", "topics"}, "Duplicate entity type(s) specified: topics"},
		{[]string{"--bootstrap-server", "b", "--describe", "--user", "a", "--entity-type", "clients"}, "--entity-{type,name,default} should not be used in conjunction with specific entity flags"},
		{[]string{"--bootstrap-server", "b", "--zookeeper", "z", "--describe", "--topic", "t"}, "Only one of --bootstrap-server or --zookeeper must be specified"},
		{[]string{"--describe", "--topic", "t"}, "One of the required --bootstrap-server or --zookeeper arguments must be specified"},
		{[]string{"--zookeeper", "z", "--describe", "--all", "--topic", "t"}, "--bootstrap-server must be specified for --all"},
		{[]string{"--bootstrap-server", "b", "--describe", "--broker", "x"}, "The entity name for brokers must be a valid integer broker id, but it is: x"},
		{[]string{"--bootstrap-server", "b", "--alter", "--entity-type", "topics", "--add-config", "a=b"}, "an entity name must be specified with --alter of topics"},
		{[]string{"--bootstrap-server", "b", "--alter", "--entity-type", "brokers", "--add-config", "a=b"}, "an entity-name or default entity must be specified with --alter of users, clients, brokers or ips"},
		{[]string{"--bootstrap-server", "b", "--alter", "--topic", "t"}, "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter"},
		{[]string{"--bootstrap-server", "b", "--alter", "--topic", "t", "--add-config", "a=b", "--add-config-file", "f"}, "Only one of --add-config or --add-config-file must be specified"},
		{[]string{"--bootstrap", "b"}, "bootstrap is not a recognized option"},
	} {
		got := runConfigs(c.args...)
		assert.Equal(t, 1, got.code, c.args)
		assert.Empty(t, got.stdout, c.args)
		assert.Equal(t, c.want, firstLine(got.stderr), c.args)
	}
}

func TestTheNewerReleaseKeepsZooKeeperForUsersAndBrokers(t *testing.T) {
	t.Setenv("BARNABAS_COMPAT", "3.9")
	got := runConfigs("--zookeeper", "z", "--describe", "--topic", "t")
	assert.Equal(t, ran{1, "", "Invalid entity type topics, the entity type must be one of users, brokers with a --zookeeper argument\n"}, got)
}

func TestASettingIsShownWithWhereItComesFrom(t *testing.T) {
	e := kmsg.NewDescribeConfigsResponseResourceConfig()
	e.Name, e.Value = "cleanup.policy", kmsg.StringPtr("compact,delete")
	s := kmsg.NewDescribeConfigsResponseResourceConfigConfigSynonym()
	s.Name, s.Value, s.Source = "log.cleanup.policy", kmsg.StringPtr("delete"), kmsg.ConfigSourceDefaultConfig
	e.ConfigSynonyms = append(e.ConfigSynonyms, s)
	assert.Equal(t, "  cleanup.policy=compact,delete sensitive=false synonyms={DEFAULT_CONFIG:log.cleanup.policy=delete}", settingLine(e))
	e.Value, e.IsSensitive, e.ConfigSynonyms = nil, true, nil
	assert.Equal(t, "  cleanup.policy=null sensitive=true synonyms={}", settingLine(e))
}

func TestAQuotaIsShownWithItsEntity(t *testing.T) {
	e := admin.QuotaDescription{
		Entity: admin.QuotaEntity{{Type: admin.ClientIDPart}, {Type: admin.UserPart, Name: kmsg.StringPtr("alice")}},
		Values: []admin.QuotaValue{{Key: "producer_byte_rate", Value: 2097152}, {Key: "consumer_byte_rate", Value: 50}},
	}
	assert.Equal(t, "Quota configs for user-principal 'alice', the default client-id are consumer_byte_rate=50.0, producer_byte_rate=2097152.0", quotaLine(e))
}

func TestCredentialsAreReadAsWritten(t *testing.T) {
	for text, want := range map[string]struct {
		iterations int
		password   string
	}{
		"password=secret":                  {4096, "secret"},
		"iterations=8192,password=a,b=c":   {8192, "a,b=c"},
		"iterations=-1,password=":          {4096, ""},
		"iterations=4096,password=pass=wd": {4096, "pass=wd"},
	} {
		iterations, password, err := scramSecret("SCRAM-SHA-256", text)
		require.NoError(t, err, text)
		assert.Equal(t, want.iterations, iterations, text)
		assert.Equal(t, want.password, password, text)
	}
	for text, want := range map[string]string{
		"secret":                        "Invalid credential property SCRAM-SHA-256=secret",
		"iterations=x,password=a":       "Invalid credential property SCRAM-SHA-256=iterations=x,password=a",
		"iterations=4096":               "Invalid credential property SCRAM-SHA-256=iterations=4096",
		"iterations=1000,password=abcd": "Iterations 1000 is less than the minimum 4096 required for SCRAM-SHA-256",
	} {
		_, _, err := scramSecret("SCRAM-SHA-256", text)
		assert.EqualError(t, err, want)
	}
}

func TestAUserComesBeforeItsClientInZooKeeper(t *testing.T) {
	parts := zkParts(configsAsked{types: []string{"clients", "users"}, names: []string{"app 1", "alice"}})
	e := entityOf(parts)
	assert.Equal(t, zkstate.UserEntity, e.kind)
	assert.Equal(t, "alice/clients/app%201", e.name)
	assert.Equal(t, "user-principal 'alice', client-id 'app 1'", e.shown)

	parts = zkParts(configsAsked{types: []string{"clients", "users"}, names: []string{"alice"}})
	assert.Equal(t, "alice", *parts[0].name)
	assert.Nil(t, parts[1].name)
	assert.Equal(t, "default client-id", entityOf(zkParts(configsAsked{types: []string{"clients"}, names: []string{""}})).shown)
}

func TestOnlyQuotasGoToClientsAndCredentialsStandAlone(t *testing.T) {
	for _, c := range []struct {
		a    configsAsked
		want string
	}{
		{configsAsked{types: []string{"clients"}, names: []string{"a"}, add: []setting{{"SCRAM-SHA-256", "password=x"}}}, "Only quota configs can be added for 'clients' using --bootstrap-server. Unexpected config names: Set(SCRAM-SHA-256)"},
		{configsAsked{types: []string{"users"}, names: []string{"a"}, remove: []string{"x"}}, "Only quota and SCRAM credential configs can be deleted for 'users' using --bootstrap-server. Unexpected config names: Set(x)"},
		{configsAsked{types: []string{"users"}, names: []string{""}, add: []setting{{"SCRAM-SHA-256", "password=x"}}}, "The use of --entity-default or --user-defaults is not allowed with User SCRAM Credentials using --bootstrap-server."},
		{configsAsked{types: []string{"users"}, names: []string{"a"}, add: []setting{{"SCRAM-SHA-256", "password=x"}, {"producer_byte_rate", "1"}}}, "Cannot alter both quota and SCRAM credential configs simultaneously for 'users' using --bootstrap-server."},
		{configsAsked{types: []string{"ips"}, names: []string{"1.2.3.4"}, add: []setting{{"producer_byte_rate", "1"}}}, "Only connection quota configs can be added for 'ips' using --bootstrap-server. Unexpected config names: producer_byte_rate"},
	} {
		assert.EqualError(t, wrongQuotaKeys(c.a), c.want)
	}
	assert.NoError(t, wrongQuotaKeys(configsAsked{types: []string{"users"}, names: []string{"a"}, add: []setting{{"producer_byte_rate", "1"}}}))
}
