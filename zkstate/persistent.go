package zkstate

import (
	"context"
	"errors"
	"fmt"
)

// persistentPaths are the directories that a broker makes when it starts.
var persistentPaths = []string{ConsumersPath, BrokerIDsPath, TopicsPath, ConfigChangesPath, DeleteTopicsPath,
	BrokerSequencePath, ISRChangeNotificationPath, ProducerIDBlockPath, LogDirEventNotificationPath,
	configRoot(TopicEntity), configRoot(ClientEntity), configRoot(UserEntity), configRoot(BrokerEntity), configRoot(IPEntity)}

// MakePersistentPaths makes the top-level directories that every broker expects, as far as they are missing.
func (c *Client) MakePersistentPaths(ctx context.Context) error {
	return c.makePaths(ctx, persistentPaths...)
}

// makePaths makes directories, and those above them, as far as they are missing.
func (c *Client) makePaths(ctx context.Context, paths ...string) error {
	_, err := c.ensure(ctx, directories(paths))
	return err
}

// directories are the creates that make paths and what is above them, parents first.
func directories(paths []string) []Op {
	var ops []Op
	seen := map[string]bool{"/": true}
	var add func(path string)
	add = func(path string) {
		if !seen[path] {
			seen[path] = true
			add(parent(path))
			ops = append(ops, Create(path, nil))
		}
	}
	for _, p := range paths {
		add(p)
	}
	return ops
}

// ensure makes nodes as far as they are missing, and answers the data of each as it stands afterwards (nil for those that are to have none). Parents come before children. What is missing is made
// in one multi: a new cluster lacks everything, and each write by itself would wait for the servers' disks.
func (c *Client) ensure(ctx context.Context, creates []Op) ([][]byte, error) {
	looks := make([]Op, len(creates))
	for i, op := range creates {
		if looks[i] = Get(op.Path); op.Data == nil {
			looks[i] = Exists(op.Path) // which nobody may be denied
		}
	}
	for {
		found, err := c.Do(ctx, looks)
		if err != nil {
			return nil, err
		}
		data := make([][]byte, len(creates))
		var missing []Op
		for i, r := range found {
			switch {
			case errors.Is(r.Err, ErrNoNode):
				missing = append(missing, creates[i])
				data[i] = creates[i].Data
			case r.Err != nil:
				return nil, fmt.Errorf("looking for %s: %w", r.Path, r.Err)
			default:
				data[i] = r.Data
			}
		}
		if len(missing) == 0 {
			return data, nil
		}
		switch _, err := c.Multi(ctx, missing); {
		case err == nil:
			return data, nil
		case errors.Is(err, ErrNodeExists), errors.Is(err, ErrNoNode), errors.Is(err, ErrConnectionLoss) && ctx.Err() == nil:
			// Another broker makes or removes them too, or the answer was lost: what is missing is looked for again.
		default:
			return nil, fmt.Errorf("creating %s and others: %w", missing[0].Path, err)
		}
	}
}

// CreateRecursive makes a persistent node and those above it, unless they exist. Those above it have no data.
func (c *Client) CreateRecursive(ctx context.Context, path string, data []byte) error {
	for {
		_, err := c.One(ctx, Create(path, data))
		switch {
		case err == nil, errors.Is(err, ErrNodeExists):
			return nil
		case errors.Is(err, ErrConnectionLoss) && ctx.Err() == nil:
			// Trying again finds the node if it was made.
		case errors.Is(err, ErrNoNode) && path != "/":
			if err := c.CreateRecursive(ctx, parent(path), nil); err != nil {
				return err
			}
		default:
			return err
		}
	}
}
