package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"gopkg.in/yaml.v3"

	"barnabas/admin/cluster"
	"barnabas/tools"
	"barnabas/tools/znode"
	"barnabas/zkstate"
)

func zkCommand() *cli.Command {
	return parent("zk", "look into ZooKeeper, with what Kafka's nodes say decoded", zkGet(), zkList(), zkTreeCommand(), zkStat())
}

// zkTree is the cluster's tree in ZooKeeper, for reading.
type zkTree struct {
	servers, tlsFile string
	within           time.Duration // for a first session
	zk               *zkstate.Client
}

// longestConnect is how long ZooKeeper is tried at most.
const longestConnect = 10 * time.Second

// do reads, once there is a session.
func (t *zkTree) do(ctx context.Context, ops ...zkstate.Op) (results []zkstate.Result, err error) {
	if t.zk == nil {
		if t.zk, err = tools.ConnectZooKeeper(t.servers, t.tlsFile, t.within); err != nil {
			return nil, err
		}
	}
	return t.zk.Do(ctx, ops)
}

func (t *zkTree) close() {
	if t.zk != nil {
		t.zk.Close()
	}
}

// znodePath reads a path of the command line.
func znodePath(text string) (string, error) {
	if !strings.HasPrefix(text, "/") {
		return "", wrongUsage("the path %s does not begin with /", text)
	}
	return path.Clean(text), nil
}

// one does one read, in the words of this face.
func (c *call) one(op zkstate.Op) (zkstate.Result, error) {
	results, err := c.tree.do(c.ctx, op)
	if err != nil {
		return zkstate.Result{}, err
	}
	return results[0], inWords(op.Path, results[0].Err)
}

func inWords(path string, err error) error {
	switch {
	case errors.Is(err, zkstate.ErrNoNode):
		return &cluster.NotFoundError{Kind: "znode", Name: path}
	case errors.Is(err, zkstate.ErrNoAuth):
		return fmt.Errorf("%s may not be read by whom ZooKeeper takes this for; KAFKA_OPTS names a JAAS file with who to be: %w", path, err)
	}
	return err
}

// nodeDocument is what a node says.
type nodeDocument struct {
	Version int     `json:"version"`
	Path    string  `json:"path"`
	Family  *string `json:"family"` // null: not one of Kafka's
	Content any     `json:"content"`
	Text    *string `json:"text"` // of a node that is none of Kafka's, or whose data is not what it should be
	Coded   *string `json:"text_base64,omitempty"`
	Problem *string `json:"problem"`
	nodeStat
}

// nodeStat is what ZooKeeper knows of a node.
type nodeStat struct {
	DataVersion  int32   `json:"data_version"`
	Children     int32   `json:"children"`
	ChildVersion int32   `json:"children_version"`
	ACLVersion   int32   `json:"acl_version"`
	Bytes        int32   `json:"bytes"`
	Session      *string `json:"session"` // of an ephemeral node
	Created      string  `json:"created_at"`
	Modified     string  `json:"modified_at"`
	CreatedBy    int64   `json:"created_zxid"`
	ModifiedBy   int64   `json:"modified_zxid"`
	ChildrenBy   int64   `json:"children_zxid"`
}

const statFields = "data_version, children, children_version, acl_version, bytes, session (of an ephemeral node), created_at, modified_at, created_zxid, modified_zxid, children_zxid"

func nodeStatOf(s zkstate.Stat) nodeStat {
	out := nodeStat{s.Version, s.NumChildren, s.Cversion, s.Aversion, s.DataLength, nil, instant(s.Ctime), instant(s.Mtime), s.Czxid, s.Mzxid, s.Pzxid}
	if s.EphemeralOwner != 0 {
		out.Session = words("0x%x", uint64(s.EphemeralOwner))
	}
	return out
}

func nodeOf(path string, data []byte, stat zkstate.Stat) *nodeDocument {
	d := &nodeDocument{Version: documentVersion, Path: path, nodeStat: nodeStatOf(stat)}
	r := znode.Read(path, data, stat)
	if r.Family != "" {
		d.Family = &r.Family
	}
	if d.Content = r.Content; r.Problem != nil {
		d.Problem = words("%v", r.Problem)
	}
	if d.Content == nil && len(data) > 0 {
		d.Text, d.Coded = written(data)
	}
	return d
}

func (d *nodeDocument) show(w io.Writer) {
	rows := [][]string{{"PATH", d.Path}}
	if d.Family != nil {
		rows = append(rows, []string{"FAMILY", *d.Family})
	}
	if d.Problem != nil {
		rows = append(rows, []string{"PROBLEM", *d.Problem})
	}
	switch {
	case d.Content != nil:
		rows = append(rows, flattened(d.Content)...)
	case d.Text != nil:
		rows = append(rows, []string{"text", *d.Text})
	case d.Coded != nil:
		rows = append(rows, []string{"text_base64", *d.Coded})
	}
	rows = append(rows, []string{"data_version", strconv.Itoa(int(d.DataVersion))}, []string{"children", strconv.Itoa(int(d.Children))}, []string{"modified_at", d.Modified})
	if d.Session != nil {
		rows = append(rows, []string{"session", *d.Session})
	}
	columns(w, rows)
}

// flattened are the fields of plain data as rows, in their order: what lies deeper has a name with dots.
func flattened(content any) [][]string {
	text, err := asJSON(content, true)
	if err != nil {
		return nil
	}
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil || len(node.Content) == 0 {
		return nil
	}
	var rows [][]string
	var walk func(name string, n *yaml.Node)
	walk = func(name string, n *yaml.Node) {
		deeper := func(part string) string {
			if name == "" {
				return part
			}
			return name + "." + part
		}
		switch {
		case n.Kind == yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				walk(deeper(n.Content[i].Value), n.Content[i+1])
			}
		case n.Kind == yaml.SequenceNode && !slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return c.Kind != yaml.ScalarNode }):
			var values []string
			for _, c := range n.Content {
				values = append(values, c.Value)
			}
			rows = append(rows, []string{name, orDash(strings.Join(values, ","))})
		case n.Kind == yaml.SequenceNode:
			for i, c := range n.Content {
				walk(deeper(strconv.Itoa(i)), c)
			}
		case n.Tag == "!!null":
			rows = append(rows, []string{name, "-"})
		default:
			rows = append(rows, []string{name, n.Value})
		}
	}
	walk("", node.Content[0])
	return rows
}

func zkGet() *cli.Command {
	return command{
		name: "get", usage: "show what a node says", arguments: "PATH", least: 1, most: 1, watched: true, asks: zooKeeper,
		help: `Shows a node. What Kafka keeps in it is decoded: registrations, topics, states of partitions, the controller, settings and quotas, access lists, requests and notifications, producer ids, features, tokens. Secrets are left out. A node of Kafka's whose data is not what it should be ends with 1. With --raw its bytes are printed as they are, secrets too.

It changes nothing: for that there is zookeeper-shell. As whom ZooKeeper is asked is said by the section Client of the JAAS file that KAFKA_OPTS names, as for Kafka's tools.

Fields: path, family (null: not one of Kafka's), content, text, problem, ` + statFields + `.

    barnabas zk get /brokers/topics/orders/partitions/0/state
    barnabas zk get /controller -o json | jq .content.broker`,
		flags: []cli.Flag{&cli.BoolFlag{Name: "raw", Usage: "print the bytes, and nothing else"}},
		run: func(c *call) (document, error) {
			at, err := znodePath(c.Args().First())
			if err != nil {
				return nil, err
			}
			r, err := c.one(zkstate.Get(at))
			if err != nil {
				return nil, err
			}
			if c.Bool("raw") {
				_, err := c.App.Writer.Write(r.Data)
				return nil, err
			}
			d := nodeOf(at, r.Data, r.Stat)
			if d.Problem != nil {
				return d, Failed
			}
			return d, nil
		},
	}.build()
}

type childrenDocument struct {
	Version  int      `json:"version"`
	Path     string   `json:"path"`
	Children []string `json:"children"`
}

func (d *childrenDocument) show(w io.Writer) {
	for _, name := range d.Children {
		columns(w, [][]string{{name}})
	}
}

// byNumber orders names, those that are numbers by their value.
func byNumber(a, b string) int {
	n, errA := strconv.ParseInt(a, 10, 64)
	m, errB := strconv.ParseInt(b, 10, 64)
	switch {
	case errA == nil && errB == nil:
		return int(min(max(n-m, -1), 1))
	case errA == nil:
		return -1
	case errB == nil:
		return 1
	}
	return strings.Compare(a, b)
}

func zkList() *cli.Command {
	return command{
		name: "ls", usage: "list the names below a node", arguments: "PATH", least: 1, most: 1, watched: true, asks: zooKeeper,
		help: `Lists the children of a node, numbers by their value.

Fields: path, children.

    barnabas zk ls /brokers/ids`,
		run: func(c *call) (document, error) {
			at, err := znodePath(c.Args().First())
			if err != nil {
				return nil, err
			}
			r, err := c.one(zkstate.Children(at))
			if err != nil {
				return nil, err
			}
			slices.SortFunc(r.Children, byNumber)
			return &childrenDocument{documentVersion, at, listed(r.Children)}, nil
		},
	}.build()
}

type treeDocument struct {
	Version   int        `json:"version"`
	Path      string     `json:"path"`
	Nodes     []treeNode `json:"nodes"`
	Truncated bool       `json:"truncated"` // there are more than were asked for
}

type treeNode struct {
	Path      string  `json:"path"`
	Family    *string `json:"family"`
	Version   int32   `json:"data_version"`
	Bytes     int32   `json:"bytes"`
	Children  int32   `json:"children"`
	Ephemeral bool    `json:"ephemeral"`
}

func (d *treeDocument) show(w io.Writer) {
	rows := [][]string{{"NODE", "VERSION", "BYTES", "FAMILY"}}
	depth := func(p string) int { return strings.Count(strings.TrimSuffix(p, "/"), "/") }
	for _, n := range d.Nodes {
		name := n.Path
		if deep := depth(n.Path) - depth(d.Path); deep > 0 {
			name = strings.Repeat("  ", deep) + path.Base(n.Path)
		}
		if n.Ephemeral {
			name += " (ephemeral)"
		}
		rows = append(rows, []string{name, strconv.Itoa(int(n.Version)), strconv.Itoa(int(n.Bytes)), text(n.Family)})
	}
	columns(w, rows)
	if d.Truncated {
		fmt.Fprintln(w, "... and more; --max shows more, --depth less")
	}
}

func zkTreeCommand() *cli.Command {
	return command{
		name: "tree", usage: "list all nodes below a node", arguments: "[PATH]", least: 0, most: 1, asks: zooKeeper,
		help: `Lists a node and what is below it, level by level as far as --depth, and as many as --max. Nodes that come and go meanwhile may be missing.

Fields: path, nodes (path, family, data_version, bytes, children, ephemeral), truncated.

    barnabas zk tree /config --depth 2`,
		flags: []cli.Flag{
			&cli.IntFlag{Name: "depth", Value: 64, Usage: "how many levels below PATH"},
			&cli.IntFlag{Name: "max", Value: 10000, Usage: "how many nodes at most"},
		},
		run: func(c *call) (document, error) {
			from := "/"
			if c.NArg() > 0 {
				var err error
				if from, err = znodePath(c.Args().First()); err != nil {
					return nil, err
				}
			}
			if c.Int("max") < 1 || c.Int("depth") < 0 {
				return nil, wrongUsage("--max has to be at least 1 and --depth at least 0")
			}
			return c.walk(from, c.Int("depth"), c.Int("max"))
		},
	}.build()
}

// walk reads level by level: the reads of a level are under way together.
func (c *call) walk(from string, depth, most int) (document, error) {
	d := &treeDocument{Version: documentVersion, Path: from}
	children := map[string][]string{}
	nodes := map[string]treeNode{}
	level := []string{from}
	for deep := 0; len(level) > 0; deep++ {
		if d.Truncated = len(nodes)+len(level) > most; d.Truncated {
			level = level[:most-len(nodes)]
		}
		ops := make([]zkstate.Op, len(level))
		for i, p := range level {
			ops[i] = zkstate.Children(p)
		}
		results, err := c.tree.do(c.ctx, ops...)
		if err != nil {
			return nil, err
		}
		var next []string
		for i, r := range results {
			switch {
			case errors.Is(r.Err, zkstate.ErrNoNode) && deep > 0:
				continue // it went meanwhile
			case r.Err != nil:
				return nil, inWords(level[i], r.Err)
			}
			n := treeNode{level[i], nil, r.Stat.Version, r.Stat.DataLength, r.Stat.NumChildren, r.Stat.EphemeralOwner != 0}
			if f := znode.Family(n.Path); f != "" {
				n.Family = &f
			}
			nodes[n.Path] = n
			slices.SortFunc(r.Children, byNumber)
			for _, name := range r.Children {
				children[n.Path] = append(children[n.Path], path.Join(n.Path, name))
			}
			next = append(next, children[n.Path]...)
		}
		if level = next; d.Truncated || deep == depth {
			break
		}
	}
	var list func(p string)
	list = func(p string) {
		if n, read := nodes[p]; read {
			d.Nodes = append(d.Nodes, n)
			for _, child := range children[p] {
				list(child)
			}
		}
	}
	list(from)
	return d, nil
}

type statDocument struct {
	Version int     `json:"version"`
	Path    string  `json:"path"`
	Family  *string `json:"family"`
	nodeStat
}

func (d *statDocument) show(w io.Writer) {
	columns(w, append([][]string{{"PATH", d.Path}, {"FAMILY", text(d.Family)}}, flattened(d.nodeStat)...))
}

func zkStat() *cli.Command {
	return command{
		name: "stat", usage: "show what ZooKeeper knows of a node", arguments: "PATH", least: 1, most: 1, watched: true, asks: zooKeeper,
		help: `Shows versions, transactions and times of a node, and whose session an ephemeral one belongs to. The created_zxid of a broker's registration is the broker's epoch, the data_version of a partition's state the partition's epoch, that of /controller_epoch what the controller's writes are fenced by.

Fields: path, family, ` + statFields + `.`,
		run: func(c *call) (document, error) {
			at, err := znodePath(c.Args().First())
			if err != nil {
				return nil, err
			}
			r, err := c.one(zkstate.Exists(at))
			if err != nil {
				return nil, err
			}
			d := &statDocument{Version: documentVersion, Path: at, nodeStat: nodeStatOf(r.Stat)}
			if f := znode.Family(at); f != "" {
				d.Family = &f
			}
			return d, nil
		},
	}.build()
}
