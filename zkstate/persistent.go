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

func (c *Client) makePaths(ctx context.Context, paths ...string) error {
	for _, p := range paths {
		if err := c.CreateRecursive(ctx, p, nil); err != nil {
			return fmt.Errorf("creating %s: %w", p, err)
		}
	}
	return nil
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

// writer is what can delete: a Client or a Fenced.
type writer interface {
	Do(ctx context.Context, ops []Op) ([]Result, error)
}

// DeleteRecursive deletes a node and everything below it; a missing node is no error.
func (c *Client) DeleteRecursive(ctx context.Context, path string) error {
	return deleteRecursive(ctx, c, path)
}

// DeleteRecursive is Client.DeleteRecursive with every delete fenced.
func (f *Fenced) DeleteRecursive(ctx context.Context, path string) error {
	return deleteRecursive(ctx, f, path)
}

// deleteRecursive lists the tree level by level and deletes it from below. What somebody creates meanwhile makes a
// delete fail with ErrNotEmpty; then it lists again.
func deleteRecursive(ctx context.Context, w writer, path string) error {
	for {
		levels, err := list(ctx, w, path)
		if err != nil {
			return err
		}
		again := false
		for i := len(levels) - 1; i >= 0 && !again; i-- {
			ops := make([]Op, len(levels[i]))
			for j, p := range levels[i] {
				ops[j] = Delete(p, AnyVersion)
			}
			results, err := w.Do(ctx, ops)
			if err != nil {
				return err
			}
			for _, r := range results {
				switch {
				case r.Err == nil, errors.Is(r.Err, ErrNoNode):
				case errors.Is(r.Err, ErrNotEmpty), errors.Is(r.Err, ErrConnectionLoss) && ctx.Err() == nil:
					again = true
				default:
					return fmt.Errorf("deleting %s: %w", r.Path, r.Err)
				}
			}
		}
		if !again {
			return nil
		}
	}
}

// list is the tree below path by levels, path itself being the first; nothing when it does not exist.
func list(ctx context.Context, w writer, path string) ([][]string, error) {
	var levels [][]string
	for level := []string{path}; len(level) > 0; {
		ops := make([]Op, len(level))
		for i, p := range level {
			ops[i] = Children(p)
		}
		results, err := w.Do(ctx, ops)
		if err != nil {
			return nil, err
		}
		var there, below []string
		for i, r := range results {
			if errors.Is(r.Err, ErrNoNode) {
				continue
			}
			if r.Err != nil {
				return nil, r.Err
			}
			there = append(there, level[i])
			for _, child := range r.Children {
				below = append(below, level[i]+"/"+child)
			}
		}
		if len(there) > 0 {
			levels = append(levels, there)
		}
		level = below
	}
	return levels, nil
}
