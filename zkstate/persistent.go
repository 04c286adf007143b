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
