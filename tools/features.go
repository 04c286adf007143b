package tools

import (
	"context"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// kafka-features has two faces: flags in 2.8, sub-commands since 3.3. A cluster on ZooKeeper has no features (KIP-584): there is nothing to show, and every change is refused.

// Features is kafka-features. It is called by sub-commands when one is named, or when the newer texts are asked for.
func Features(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	if compat39() || slices.ContainsFunc(args, featuresCommand.IsCommand) {
		return featuresByCommand(args, stdout, stderr)
	}
	return featuresByFlags(args, stdout, stderr)
}

// featureTime is how long a question about features may take.
const featureTime = time.Minute

// featureLevels are the lowest and the highest level of a feature.
type featureLevels struct{ low, high int16 }

// describedFeatures is what a broker tells of features.
type describedFeatures struct {
	supported, finalized map[string]featureLevels
	epoch                string // of the finalized ones, "-" where there is none
}

func describeFeatures(ctx context.Context, client *kgo.Client) (describedFeatures, error) {
	d := describedFeatures{map[string]featureLevels{}, map[string]featureLevels{}, "-"}
	resp, err := kmsg.NewPtrApiVersionsRequest().RequestWith(ctx, client)
	if err == nil {
		err = answered(resp.ErrorCode, nil)
	}
	if err != nil {
		return d, err
	}
	for _, f := range resp.SupportedFeatures {
		d.supported[f.Name] = featureLevels{f.MinVersion, f.MaxVersion}
	}
	for _, f := range resp.FinalizedFeatures {
		d.finalized[f.Name] = featureLevels{f.MinVersionLevel, f.MaxVersionLevel}
	}
	if resp.FinalizedFeaturesEpoch >= 0 {
		d.epoch = strconv.FormatInt(resp.FinalizedFeaturesEpoch, 10)
	}
	return d, nil
}

// names are the features that are supported or finalized.
func (d describedFeatures) names() []string {
	all := maps.Clone(d.supported)
	maps.Copy(all, d.finalized)
	return sortedKeys(all)
}

// The kinds of change (KIP-584, KIP-778).
const (
	featureUpgrade int8 = iota + 1
	featureDowngrade
	featureUnsafeDowngrade
)

// featureUpdate is a feature with the level that it is to have; 0 takes it away.
type featureUpdate struct {
	level int16
	kind  int8
}

// updateFeatures asks the controller for changes and tells of each feature what became of it, nil where it was done.
func updateFeatures(ctx context.Context, client *kgo.Client, updates map[string]featureUpdate, dryRun bool) (map[string]error, error) {
	req := kmsg.NewPtrUpdateFeaturesRequest()
	req.ValidateOnly = dryRun
	for _, name := range sortedKeys(updates) {
		u := kmsg.NewUpdateFeaturesRequestFeatureUpdate()
		u.Feature, u.MaxVersionLevel, u.UpgradeType, u.AllowDowngrade = name, updates[name].level, updates[name].kind, updates[name].kind != featureUpgrade
		req.FeatureUpdates = append(req.FeatureUpdates, u)
	}
	resp, err := req.RequestWith(ctx, client)
	if err == nil {
		err = answered(resp.ErrorCode, resp.ErrorMessage)
	}
	if err != nil {
		return nil, err
	}
	results := map[string]error{}
	for name := range updates {
		results[name] = nil
	}
	for _, r := range resp.Results {
		results[r.Feature] = answered(r.ErrorCode, r.ErrorMessage)
	}
	return results, nil
}
