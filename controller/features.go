package controller

import (
	"errors"
	"maps"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/zkstate"
)

// setUpFeatures makes /feature say whether features are versioned (KIP-584), which they are since 2.7. Levels that were
// finalised are kept; below 2.7 they are cleared.
func (c *Core) setUpFeatures() error {
	node := zkstate.Features{Version: 1, Enabled: c.cfg.IBP.featureVersioning(), Levels: map[string]int16{}}
	if c.cfg.IBP.AtLeast(3, 3, 0) {
		node.Version = 2
	}
	results, err := c.read(zkstate.Get(zkstate.FeaturePath))
	if err != nil {
		return err
	}
	var write zkstate.Op
	switch r := results[0]; {
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
	results, err = c.write(write)
	if err != nil {
		return err
	}
	return results[0].Err
}

// updateFeatures is UpdateFeatures (api 57). No feature is supported in ZooKeeper mode, so every update is refused, each
// for its reason.
func (c *Core) updateFeatures(id uint64, req *kmsg.UpdateFeaturesRequest) {
	resp := req.ResponseKind().(*kmsg.UpdateFeaturesResponse)
	for _, u := range req.FeatureUpdates {
		why := "Could not apply finalized feature update because the provided feature is not supported."
		switch {
		case u.Feature == "":
			why = "Feature name can not be empty."
		case u.MaxVersionLevel < 1 && (u.UpgradeType > 1 || u.AllowDowngrade):
			why = "Can not delete non-existing finalized feature."
		case u.MaxVersionLevel < 1:
			why = "Can not provide versionLevel less than 1 without setting the SAFE downgradeType in the request."
		}
		resp.Results = append(resp.Results, kmsg.UpdateFeaturesResponseResult{
			Feature: u.Feature, ErrorCode: kerr.InvalidRequest.Code, ErrorMessage: &why})
	}
	c.answer(id, resp)
}
