package zkstate

import (
	"context"
	"errors"
)

// MissingSecureRoots are those of SecureRootPaths that do not exist, in their order.
func (c *Client) MissingSecureRoots(ctx context.Context) ([]string, error) {
	ops := make([]Op, len(SecureRootPaths))
	for i, path := range SecureRootPaths {
		ops[i] = Exists(path)
	}
	results, err := c.Do(ctx, ops)
	if err != nil {
		return nil, err
	}
	var missing []string
	for i, r := range results {
		switch {
		case errors.Is(r.Err, ErrNoNode):
			missing = append(missing, SecureRootPaths[i])
		case r.Err != nil:
			return nil, r.Err
		}
	}
	return missing, nil
}

// ResetACLs gives the root and everything below SecureRootPaths the ACL that Config.SecureACLs gives new nodes. Roots that are missing are made, but for that of the controller. What goes meanwhile is
// no error; what comes meanwhile has the ACL of whoever makes it.
func (c *Client) ResetACLs(ctx context.Context) error {
	if err := c.resetACLs(ctx, []string{"/"}); err != nil {
		return err
	}
	for _, root := range SecureRootPaths {
		if root != ControllerPath {
			if err := c.CreateRecursive(ctx, root, nil); err != nil {
				return err
			}
		}
		levels, err := c.levels(ctx, root)
		if err != nil {
			return err
		}
		for _, level := range levels {
			if err := c.resetACLs(ctx, level); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Client) resetACLs(ctx context.Context, paths []string) error {
	ops := make([]Op, len(paths))
	for i, path := range paths {
		ops[i] = Op{Kind: OpSetACL, Path: path, Version: AnyVersion}
	}
	results, err := c.Do(ctx, ops)
	if err != nil {
		return err
	}
	for i, r := range results {
		for errors.Is(r.Err, ErrConnectionLoss) && ctx.Err() == nil {
			r, _ = c.One(ctx, ops[i])
		}
		if r.Err != nil && !errors.Is(r.Err, ErrNoNode) {
			return r.Err
		}
	}
	return nil
}

// levels is the tree below path, path itself being the first; nothing when it does not exist.
func (c *Client) levels(ctx context.Context, path string) ([][]string, error) {
	var levels [][]string
	for level := []string{path}; len(level) > 0; {
		ops := make([]Op, len(level))
		for i, p := range level {
			ops[i] = Children(p)
		}
		results, err := c.Do(ctx, ops)
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
