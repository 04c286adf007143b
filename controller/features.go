package controller

import (
	"errors"
	"fmt"
	"maps"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/zkstate"
)

// setUpFeatures makes /feature say whether features are versioned (KIP-584), which they are since 2.7. Levels that were
// finalised are kept; below 2.7 they are cleared. found is the node as it was read.
func (c *Core) setUpFeatures(found zkstate.Result) error {
	node := zkstate.Features{Version: 1, Enabled: c.cfg.IBP.featureVersioning(), Levels: map[string]int16{}}
	if c.cfg.IBP.AtLeast(3, 3, 0) {
		node.Version = 2
	}
	var write zkstate.Op
	switch r := found; {
	case errors.Is(r.Err, zkstate.ErrNoNode):
		write = zkstate.Create(zkstate.FeaturePath, node.Encode())
	case r.Err != nil:
		return r.Err
	default:
		present, err := zkstate.DecodeFeatures(r.Data)
		if err != nil {
			c.logf(LogError, "%s is not readable and will be written anew: %v", zkstate.FeaturePath, err)
		} else if node.Enabled && present.Enabled {
			node.Levels = present.Levels
		}
		if err == nil && present.Version == node.Version && present.Enabled == node.Enabled && maps.Equal(present.Levels, node.Levels) {
			return nil
		}
		write = zkstate.Set(zkstate.FeaturePath, node.Encode(), r.Stat.Version)
	}
	results, err := c.write(write)
	if err != nil {
		return err
	}
	return results[0].Err
}

// updateFeatures is UpdateFeatures (api 57). No feature is supported in ZooKeeper mode, so every update is refused, each
// for its reason.
func (c *Core) updateFeatures(id uint64, req *kmsg.UpdateFeaturesRequest) {
	resp := req.ResponseKind().(*kmsg.UpdateFeaturesResponse)
	if !c.cfg.IBP.featureVersioning() {
		why := "Feature versioning system is disabled."
		resp.ErrorCode, resp.ErrorMessage = kerr.InvalidRequest.Code, &why
		c.answer(id, resp)
		return
	}
	refused := map[string]bool{}
	for _, u := range req.FeatureUpdates {
		if refused[u.Feature] {
			continue
		}
		refused[u.Feature] = true
		why := featureRefusal(req.Version, u)
		resp.Results = append(resp.Results, kmsg.UpdateFeaturesResponseResult{
			Feature: u.Feature, ErrorCode: kerr.InvalidRequest.Code, ErrorMessage: &why})
	}
	c.answer(id, resp)
}

// featureRefusal is why a feature is not given a level.
func featureRefusal(version int16, u kmsg.UpdateFeaturesRequestFeatureUpdate) string {
	const upgrade, unsafeDowngrade = 1, 3
	kind := u.UpgradeType
	if version == 0 {
		if kind = upgrade; u.AllowDowngrade {
			kind = unsafeDowngrade
		}
	}
	switch {
	case u.Feature == "":
		return "Feature name can not be empty."
	case kind < upgrade || kind > unsafeDowngrade:
		return "Received unknown upgrade type."
	case u.MaxVersionLevel < 1 && kind != upgrade:
		return "Can not delete non-existing finalized feature."
	case u.MaxVersionLevel < 1:
		return fmt.Sprintf("Can not provide versionLevel: %d less than 1 without setting the SAFE downgradeType in the request.", u.MaxVersionLevel)
	}
	return "Could not apply finalized feature update because the provided feature is not supported."
}
