package eventlist

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// survey finds the Events in the code.
type survey struct {
	t         *testing.T
	packages  []*folder
	constants map[string]string // by folder and name, such as "membership/v1alpha1.ReasonReady"
	values    map[string]bool   // all string literals, and the names of all types
}

// folder is a package.
type folder struct {
	name      string
	files     *token.FileSet
	functions []*function
	comments  map[string]map[int]*ast.CommentGroup // by file, and by the line after the group
}

// newSurvey parses the packages of muster without those of examples, tools and tests.
func newSurvey(t *testing.T) *survey {
	t.Helper()
	s := &survey{t: t, constants: map[string]string{}, values: map[string]bool{"True": true, "False": true}}
	for _, top := range []string{"addon", "membership", "placement", "tenancy", "work"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.IsDir() {
				return err
			}
			if entry.Name() == "testdata" {
				return filepath.SkipDir
			}
			name, err := filepath.Rel(root, path)
			s.parse(path, filepath.ToSlash(name))
			return err
		}))
	}
	return s
}

// parse adds the package in a folder.
func (s *survey) parse(path, name string) {
	s.t.Helper()
	sources, err := filepath.Glob(filepath.Join(path, "*.go"))
	require.NoError(s.t, err)
	f := &folder{name: name, files: token.NewFileSet(), comments: map[string]map[int]*ast.CommentGroup{}}
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(f.files, source, nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(s.t, err)
		above := map[int]*ast.CommentGroup{}
		for _, group := range file.Comments {
			above[f.files.Position(group.End()).Line+1] = group
		}
		f.comments[source] = above
		ast.Inspect(file, func(n ast.Node) bool { return s.declare(f, n) })
	}
	s.packages = append(s.packages, f)
}

// declare adds a function or constants.
func (s *survey) declare(f *folder, n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncDecl:
		if n.Body != nil {
			f.functions = append(f.functions, &function{name: n.Name.Name, params: params(n.Type), body: n.Body})
		}
	case *ast.AssignStmt:
		literal, ok := n.Rhs[0].(*ast.FuncLit)
		if variable, is := n.Lhs[0].(*ast.Ident); ok && is {
			f.functions = append(f.functions, &function{name: variable.Name, params: params(literal.Type), body: literal.Body})
		}
	case *ast.BasicLit:
		if text, is := literal(n); is {
			s.values[text] = true
		}
	case *ast.TypeSpec:
		s.values[n.Name.Name] = true
	case *ast.ValueSpec:
		for i, name := range n.Names {
			if i >= len(n.Values) {
				continue
			}
			if selector, is := n.Values[i].(*ast.SelectorExpr); is && strings.HasPrefix(selector.Sel.Name, "EventType") {
				s.constants[f.name+"."+name.Name] = strings.TrimPrefix(selector.Sel.Name, "EventType")
			}
			if text, is := literal(n.Values[i]); is {
				s.constants[f.name+"."+name.Name] = text
			}
		}
	}
	return true
}

func params(of *ast.FuncType) (all []param) {
	for _, field := range of.Params.List {
		for _, name := range field.Names {
			all = append(all, param{name.Name, field.Type})
		}
	}
	return all
}

// run returns all Events.
func (s *survey) run() (events []event) {
	for _, f := range s.packages {
		for changed := true; changed; {
			changed = false
			for _, function := range f.functions {
				function.calls(f, func(call *ast.CallExpr, callee *texts, at token.Position) {
					values := s.texts(f, function, call, callee, at)
					if values.reason.isParam && function.sink == nil {
						function.sink, changed = &values, true
					}
				})
			}
		}
		for _, function := range f.functions {
			function.calls(f, func(call *ast.CallExpr, callee *texts, at token.Position) {
				values := s.texts(f, function, call, callee, at)
				if values.reason.isParam {
					require.Equal(s.t, *function.sink, values, "%s: the calls in %s pass different values on", at, function.name)
					return
				}
				events = append(events, event{
					object: values.object.text, reason: values.reason.text, kind: values.kind.text, message: values.message.text,
					folder: f.name, position: at.String(), computed: s.mark(f, at)["reason"] != "",
				})
			})
		}
	}
	return events
}

// calls visits the calls of Eventf, and of functions that pass a reason on to it, with the position of the statement.
func (fn *function) calls(f *folder, visit func(*ast.CallExpr, *texts, token.Position)) {
	var statement token.Position
	ast.Inspect(fn.body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			for _, other := range f.functions {
				if other.body == n.Body {
					return false // The literal has a name, and is visited separately.
				}
			}
		case *ast.BlockStmt, *ast.CaseClause:
		case ast.Stmt:
			statement = f.files.Position(n.Pos())
		case *ast.CallExpr:
			if callee := f.callee(n); callee != nil {
				visit(n, callee, statement)
			}
		}
		return true
	})
}

// callee returns the values that the called function passes to Eventf; nil: the function does not record Events.
func (f *folder) callee(call *ast.CallExpr) *texts {
	name := ""
	switch called := call.Fun.(type) {
	case *ast.Ident:
		name = called.Name
	case *ast.SelectorExpr:
		name = called.Sel.Name
	}
	if name == "Eventf" && len(call.Args) >= 6 {
		return &texts{parameter(0), parameter(3), parameter(2), parameter(5)}
	}
	for _, function := range f.functions {
		if function.name != name || function.sink == nil || len(function.params) == 0 {
			continue
		}
		_, variadic := function.params[len(function.params)-1].kind.(*ast.Ellipsis)
		if len(call.Args) == len(function.params) || variadic && len(call.Args) >= len(function.params)-1 {
			return function.sink
		}
	}
	return nil
}

func parameter(index int) source { return source{param: index, isParam: true} }

// texts returns the values that a call passes to Eventf, in terms of the function that contains the call.
func (s *survey) texts(f *folder, in *function, call *ast.CallExpr, callee *texts, at token.Position) texts {
	marks := s.mark(f, at)
	of := func(field string, from source, resolve func(*folder, *function, ast.Expr) source) source {
		switch {
		case marks[field] != "":
			return source{text: marks[field]}
		case !from.isParam:
			return from
		case field == "message" && from.param+1 < len(call.Args) && isVerb(call.Args[from.param]):
			return resolve(f, in, call.Args[from.param+1])
		}
		return resolve(f, in, call.Args[from.param])
	}
	return texts{
		object: of("object", callee.object, s.object), reason: of("reason", callee.reason, s.text),
		kind: of("type", callee.kind, s.text), message: of("message", callee.message, s.text),
	}
}

var mark = regexp.MustCompile(`(?m)^\+event:(object|reason|type|message)=(.*)$`)

// mark returns the values in the comment above a statement.
func (s *survey) mark(f *folder, at token.Position) map[string]string {
	group := f.comments[at.Filename][at.Line]
	if group == nil {
		return nil
	}
	values := map[string]string{}
	var text strings.Builder
	for _, comment := range group.List {
		text.WriteString(strings.TrimSpace(strings.TrimPrefix(comment.Text, "//")) + "\n")
	}
	for _, match := range mark.FindAllStringSubmatch(text.String(), -1) {
		values[match[1]] = match[2]
	}
	return values
}

// isVerb reports whether an expression is a format for a single value.
func isVerb(e ast.Expr) bool {
	text, is := literal(e)
	return is && text == "%s"
}

var (
	verb   = regexp.MustCompile(`%[-+.0-9]*[a-z]`)
	letter = regexp.MustCompile(`[A-Za-z]`)
)

// text resolves a reason, a type or a message.
func (s *survey) text(f *folder, in *function, e ast.Expr) source {
	if text, is := literal(e); is {
		if text = verb.ReplaceAllString(text, "…"); !letter.MatchString(text) {
			return source{}
		}
		return source{text: text}
	}
	switch e := e.(type) {
	case *ast.Ident:
		if index := in.index(e.Name); index >= 0 {
			return parameter(index)
		}
		return source{text: s.constants[f.name+"."+e.Name]}
	case *ast.SelectorExpr:
		if kind, is := strings.CutPrefix(e.Sel.Name, "EventType"); is {
			return source{text: kind}
		}
		if strings.HasPrefix(e.Sel.Name, "Reason") {
			top, _, _ := strings.Cut(f.name, "/")
			return source{text: s.constants[top+"/v1alpha1."+e.Sel.Name]}
		}
	case *ast.CallExpr: // fmt.Sprintf, or a function that limits or completes a message
		switch called := e.Fun.(type) {
		case *ast.SelectorExpr:
			if called.Sel.Name == "Sprintf" || called.Sel.Name == "Text" || called.Sel.Name == "FormatMessage" {
				return s.text(f, in, e.Args[0])
			}
		case *ast.Ident:
			if called.Name == "short" || called.Name == "bounded" {
				return s.text(f, in, e.Args[0])
			}
		}
	case *ast.BinaryExpr:
		left, right := s.text(f, in, e.X), s.text(f, in, e.Y)
		if e.Op == token.ADD && !left.isParam && left.text != "" {
			if right.isParam || right.text == "" {
				right.text = "…"
			}
			return source{text: left.text + right.text}
		}
	}
	return source{}
}

// object resolves the kind of the object of an Event.
func (s *survey) object(f *folder, in *function, e ast.Expr) source {
	switch e := e.(type) {
	case *ast.CallExpr: // a conversion
		if len(e.Args) == 1 {
			return s.object(f, in, e.Args[0])
		}
	case *ast.Ident:
		index := in.index(e.Name)
		if index < 0 {
			return source{}
		}
		pointer, is := in.params[index].kind.(*ast.StarExpr)
		if !is {
			return parameter(index)
		}
		switch named := pointer.X.(type) {
		case *ast.SelectorExpr:
			return source{text: named.Sel.Name}
		case *ast.Ident:
			return source{text: named.Name}
		}
	}
	return source{}
}

// index returns the index of a parameter, or -1.
func (fn *function) index(name string) int {
	for i, p := range fn.params {
		if p.name == name {
			return i
		}
	}
	return -1
}

// literal returns the text of a string literal, or of a sum of string literals.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		left, ok := literal(e.X)
		right, also := literal(e.Y)
		return left + right, ok && also && e.Op == token.ADD
	}
	return "", false
}
