package wire

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// kafkaServes reads what Kafka 3.9.1 advertises in ZooKeeper mode.
func kafkaServes(t *testing.T) map[int16]API {
	t.Helper()
	file, err := os.Open("testdata/api-versions.tsv")
	require.NoError(t, err)
	defer file.Close()
	rows := make(map[int16]API)
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		columns := strings.Split(lines.Text(), "\t")
		var row API
		if len(columns) < 3 {
			continue
		}
		if _, err := fmt.Sscanf(columns[0]+" "+columns[2], "%d %d-%d", &row.Key, &row.Min, &row.Max); err != nil {
			continue // a heading
		}
		row.Name = columns[1]
		rows[row.Key] = row
	}
	require.NoError(t, lines.Err())
	require.Len(t, rows, 62)
	return rows
}

func TestTheTableServesTheRangesOfKafka(t *testing.T) {
	kafka := kafkaServes(t)
	previous := int16(-1)
	for _, api := range APIs {
		require.Greater(t, api.Key, previous, "in the order of keys")
		previous = api.Key
		want, ok := kafka[api.Key]
		require.True(t, ok, api.Name)
		require.Equal(t, want.Name, api.Name)
		require.Equal(t, want.Max, api.Max, api.Name)
		require.Equal(t, want.Min, api.Min, api.Name)
		require.Contains(t, parsedLayouts, api.Key, api.Name)
		require.LessOrEqual(t, api.Max, kmsg.RequestForKey(api.Key).MaxVersion(), api.Name)
	}
}

func TestFlexibleVersionsAreThoseOfKmsg(t *testing.T) {
	for _, api := range APIs {
		req := kmsg.RequestForKey(api.Key)
		for version := api.Min; version <= api.Max; version++ {
			req.SetVersion(version)
			require.Equal(t, req.IsFlexible(), api.Flexible(version), "%s version %d", api.Name, version)
		}
	}
}

func TestAPIVersionsIsTheTable(t *testing.T) {
	resp := APIVersions(3)
	require.EqualValues(t, 3, resp.Version)
	require.Len(t, resp.ApiKeys, len(APIs))
	for i, api := range APIs {
		require.Equal(t, []int16{api.Key, api.Min, api.Max},
			[]int16{resp.ApiKeys[i].ApiKey, resp.ApiKeys[i].MinVersion, resp.ApiKeys[i].MaxVersion})
	}
}

// BR-001: a newer client reads this answer, and steps down.
func TestAnUnknownVersionOfApiVersionsIsAnsweredInVersionZero(t *testing.T) {
	h, _, err := ParseHeader(appendHeader(nil, 18, 99, 7, kmsg.StringPtr("x"), true))
	var unsupported *UnsupportedError
	require.ErrorAs(t, err, &unsupported)
	require.EqualValues(t, 7, h.CorrelationID)
	h.Version = 0
	require.Equal(t, []byte{
		0, 0, 0, 16, // size
		0, 0, 0, 7, // correlation id, and no tagged fields
		0, 35, // UNSUPPORTED_VERSION
		0, 0, 0, 1, // one row
		0, 18, 0, 0, 0, 4,
	}, AppendResponse(nil, h, UnsupportedAPIVersions()))
}

func TestCodeOfErrors(t *testing.T) {
	code, message := Code(nil)
	require.Zero(t, code)
	require.Nil(t, message)

	code, message = Code(kerr.NotLeaderForPartition)
	require.Equal(t, kerr.NotLeaderForPartition.Code, code)
	require.Nil(t, message)

	code, message = Code(fmt.Errorf("topic x: %w", kerr.InvalidTopicException))
	require.Equal(t, kerr.InvalidTopicException.Code, code)
	require.Contains(t, *message, "topic x")

	code, message = Code(errors.New("disk on fire"))
	require.Equal(t, kerr.UnknownServerError.Code, code)
	require.Nil(t, message)
}
