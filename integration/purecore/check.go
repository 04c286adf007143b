package purecore

import (
	"context"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"

	"barnabas/integration/lane"
)

// Check fails t for everything in the given files of the package in dir that a core may not do. Without files it
// looks at all of the package that are not tests. Files are named relative to dir; patterns such as "recovery*.go" work.
func Check(t testing.TB, dir string, files ...string) {
	t.Helper()
	faults, err := inspect(lane.Patience(t), dir, files)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		t.Error(f)
	}
}

// inspect gives the faults as file:line: text, in order. It runs the go command, which compiles what the package imports.
func inspect(ctx context.Context, dir string, files []string) ([]string, error) {
	loaded, err := packages.Load(&packages.Config{
		Context: ctx, Dir: dir,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports,
	}, ".")
	if err != nil {
		return nil, fmt.Errorf("loading %s: %w", dir, err)
	}
	pkg := loaded[0]
	if len(pkg.Errors) > 0 {
		return nil, fmt.Errorf("loading %s: %w", dir, pkg.Errors[0])
	}
	var faults []string
	unmatched := slices.Clone(files)
	for _, file := range pkg.Syntax {
		name := filepath.Base(pkg.Fset.Position(file.Pos()).Filename)
		matched := len(files) == 0
		for _, pattern := range files {
			if ok, err := filepath.Match(pattern, name); err != nil {
				return nil, err
			} else if ok {
				matched = true
				unmatched = slices.DeleteFunc(unmatched, func(p string) bool { return p == pattern })
			}
		}
		if matched {
			faults = append(faults, inspectFile(pkg, file)...)
		}
	}
	if len(unmatched) > 0 {
		return nil, fmt.Errorf("%s has no files %v: the check would look at nothing", dir, unmatched)
	}
	return faults, nil
}

type inspector struct {
	pkg      *packages.Package
	anyOrder map[int]bool // lines under a purecore:anyorder comment
	function string       // the declared function that is being walked
	faults   []string
}

func inspectFile(pkg *packages.Package, file *ast.File) []string {
	in := &inspector{pkg: pkg, anyOrder: map[int]bool{}}
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if reason, ok := strings.CutPrefix(comment.Text, "//purecore:anyorder"); ok && strings.TrimSpace(reason) != "" {
				in.anyOrder[pkg.Fset.Position(group.End()).Line+1] = true
			}
		}
	}
	for _, decl := range file.Decls {
		in.function = ""
		if f, ok := decl.(*ast.FuncDecl); ok {
			in.function = f.Name.Name
		}
		ast.Inspect(decl, in.node)
	}
	return in.faults
}

func (in *inspector) fault(at token.Pos, format string, args ...any) {
	p := in.pkg.Fset.Position(at)
	in.faults = append(in.faults, fmt.Sprintf("%s:%d: %s", filepath.Base(p.Filename), p.Line, fmt.Sprintf(format, args...)))
}

func (in *inspector) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		in.fault(n.Pos(), "a core starts no goroutine")
	case *ast.SelectStmt:
		in.fault(n.Pos(), "a core does not select")
	case *ast.SendStmt:
		in.fault(n.Pos(), "a core sends on no channel")
	case *ast.ChanType:
		in.fault(n.Pos(), "a core has no channel")
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			in.fault(n.Pos(), "a core receives from no channel")
		}
	case *ast.RangeStmt:
		in.rangeOver(n)
	case *ast.Ident:
		in.use(n)
	case *ast.CallExpr:
		return !in.sortsKeys(n)
	}
	return true
}

func (in *inspector) rangeOver(n *ast.RangeStmt) {
	t := in.pkg.TypesInfo.TypeOf(n.X)
	if t == nil {
		return
	}
	switch t.Underlying().(type) {
	case *types.Chan:
		in.fault(n.Pos(), "a core receives from no channel")
	case *types.Map:
		if !in.orderCannotShow(n.Pos()) {
			in.fault(n.Pos(), "the order of a map shows: walk sorted keys")
		}
	}
}

func (in *inspector) orderCannotShow(at token.Pos) bool {
	return strings.HasPrefix(in.function, "sorted") || strings.HasPrefix(in.function, "Sorted") ||
		in.anyOrder[in.pkg.Fset.Position(at).Line]
}

// sortsKeys recognises slices.Sorted(maps.Keys(m)), whose inner call is fine.
func (in *inspector) sortsKeys(call *ast.CallExpr) bool {
	f := in.callee(call)
	if f == nil || f.Pkg() == nil || f.Pkg().Path() != "slices" || !strings.HasPrefix(f.Name(), "Sorted") || len(call.Args) == 0 {
		return false
	}
	inner, ok := call.Args[0].(*ast.CallExpr)
	if !ok {
		return false
	}
	g := in.callee(inner)
	if g == nil || g.Pkg() == nil || g.Pkg().Path() != "maps" {
		return false
	}
	for _, arg := range inner.Args {
		ast.Inspect(arg, in.node)
	}
	return true
}

func (in *inspector) callee(call *ast.CallExpr) types.Object {
	fun := call.Fun
	if index, ok := fun.(*ast.IndexExpr); ok {
		fun = index.X
	}
	switch f := fun.(type) {
	case *ast.SelectorExpr:
		return in.pkg.TypesInfo.Uses[f.Sel]
	case *ast.Ident:
		return in.pkg.TypesInfo.Uses[f]
	}
	return nil
}

var (
	clocks = []string{"Now", "Since", "Until", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "Sleep"}
	// seeded are the functions of math/rand that draw nothing from the shared source.
	seeded = []string{"New", "NewPCG", "NewChaCha8", "NewSource", "NewZipf"}
	// asking are the functions of os that only look at an error.
	asking = []string{"IsExist", "IsNotExist", "IsPermission", "IsTimeout"}
	// dialling begins the names of functions of net that leave the process.
	dialling = []string{"Dial", "Listen", "Lookup", "Interface", "FileConn", "FileListener", "Resolve"}
)

// use looks at functions of other packages, called or passed on.
func (in *inspector) use(id *ast.Ident) {
	f, ok := in.pkg.TypesInfo.Uses[id].(*types.Func)
	if !ok || f.Pkg() == nil || f.Signature().Recv() != nil {
		return
	}
	name := f.Name()
	switch f.Pkg().Path() {
	case "time":
		if slices.Contains(clocks, name) {
			in.fault(id.Pos(), "a core is told the time: time.%s", name)
		}
	case "math/rand", "math/rand/v2":
		if !slices.Contains(seeded, name) {
			in.fault(id.Pos(), "a core draws from the source it is given: rand.%s", name)
		}
	case "crypto/rand":
		in.fault(id.Pos(), "a core draws from the source it is given: crypto/rand.%s", name)
	case "os":
		if !slices.Contains(asking, name) {
			in.fault(id.Pos(), "a core does no I/O: os.%s", name)
		}
	case "os/exec", "syscall", "golang.org/x/sys/unix":
		in.fault(id.Pos(), "a core does no I/O: %s.%s", f.Pkg().Name(), name)
	case "net":
		if slices.ContainsFunc(dialling, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			in.fault(id.Pos(), "a core does no I/O: net.%s", name)
		}
	case "maps":
		if (name == "Keys" || name == "Values" || name == "All") && !in.orderCannotShow(id.Pos()) {
			in.fault(id.Pos(), "the order of a map shows: maps.%s outside of slices.Sorted", name)
		}
	}
}
