package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The words are those of Kafka 3.9.1.
func TestEveryUpdateOfAFeatureIsRefusedForItsReason(t *testing.T) {
	const unsupported = "Could not apply finalized feature update because the provided feature is not supported."
	for _, c := range []struct {
		version int16
		update  kmsg.UpdateFeaturesRequestFeatureUpdate
		want    string
	}{
		{0, kmsg.UpdateFeaturesRequestFeatureUpdate{Feature: "a", MaxVersionLevel: 1}, unsupported},
		{1, kmsg.UpdateFeaturesRequestFeatureUpdate{Feature: "a", MaxVersionLevel: 1, UpgradeType: 1}, unsupported},
		{1, kmsg.UpdateFeaturesRequestFeatureUpdate{Feature: "a", MaxVersionLevel: 1, UpgradeType: 3}, unsupported},
		{1, kmsg.UpdateFeaturesRequestFeatureUpdate{MaxVersionLevel: 1, UpgradeType: 1}, "Feature name can not be empty."},
		{1, kmsg.UpdateFeaturesRequestFeatureUpdate{Feature: "a", MaxVersionLevel: 1}, "Received unknown upgrade type."},
		{1, kmsg.UpdateFeaturesRequestFeatureUpdate{Feature: "a", MaxVersionLevel: 1, UpgradeType: 4}, "Received unknown upgrade type."},
		{0, kmsg.UpdateFeaturesRequestFeatureUpdate{Feature: "a", AllowDowngrade: true}, "Can not delete non-existing finalized feature."},
		{1, kmsg.UpdateFeaturesRequestFeatureUpdate{Feature: "a", UpgradeType: 2}, "Can not delete non-existing finalized feature."},
		{1, kmsg.UpdateFeaturesRequestFeatureUpdate{Feature: "a", MaxVersionLevel: -1, UpgradeType: 1},
			"Can not provide versionLevel: -1 less than 1 without setting the SAFE downgradeType in the request."},
		{0, kmsg.UpdateFeaturesRequestFeatureUpdate{Feature: "a"}, "Can not provide versionLevel: 0 less than 1 without setting the SAFE downgradeType in the request."},
	} {
		assert.Equal(t, c.want, featureRefusal(c.version, c.update))
	}
}
