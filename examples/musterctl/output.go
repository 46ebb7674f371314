package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"
)

// output is the value of the flag -o.
type output struct {
	format   string
	template string   // of the format jsonpath
	formats  []string // the formats that the command supports
}

const (
	outputTable = "table"
	outputWide  = "wide"
	outputName  = "name"
	jsonPath    = "jsonpath="
)

// outputFlag adds the flag -o for results that are not API objects.
func outputFlag(cmd *cobra.Command) *output {
	return addOutputFlag(cmd, outputTable, "json", "yaml")
}

// objectOutputFlag adds the flag -o for API objects.
func objectOutputFlag(cmd *cobra.Command) *output {
	return addOutputFlag(cmd, outputTable, outputWide, outputName, "json", "yaml", jsonPath+"TEMPLATE")
}

func addOutputFlag(cmd *cobra.Command, formats ...string) *output {
	o := &output{format: outputTable, formats: formats}
	cmd.Flags().VarP(o, "output", "o", strings.Join(formats, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	return o
}

func (o *output) String() string { return o.format }
func (o *output) Type() string   { return "FORMAT" }
func (o *output) Set(value string) error {
	if template, is := strings.CutPrefix(value, jsonPath); is && slices.Contains(o.formats, jsonPath+"TEMPLATE") {
		if err := jsonpath.New("output").Parse(template); err != nil {
			return fmt.Errorf("jsonpath: %w", err)
		}
		o.format, o.template = jsonPath, template
		return nil
	}
	if !slices.Contains(o.formats, value) || strings.HasPrefix(value, jsonPath) {
		return fmt.Errorf("must be one of %s", strings.Join(o.formats, ", "))
	}
	o.format = value
	return nil
}

// isTable reports whether the result is printed as a table.
func (o *output) isTable() bool { return o.format == outputTable || o.format == outputWide }

// print writes an object in the selected format, or its table.
func (o *output) print(w io.Writer, object any, rows table) error {
	switch o.format {
	case "json":
		data, err := json.MarshalIndent(object, "", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s\n", data)
		return err
	case "yaml":
		data, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	case outputName:
		return printNames(w, object)
	case jsonPath:
		return printPath(w, object, o.template)
	default:
		return rows.write(w)
	}
}

// printNames writes API objects as <resource>.<group>/<name>, which kubectl accepts.
func printNames(w io.Writer, object any) error {
	printName := func(object runtime.Object) error {
		meta, err := meta.Accessor(object)
		if err != nil {
			return err
		}
		kind := object.GetObjectKind().GroupVersionKind()
		name := strings.ToLower(kind.Kind)
		if kind.Group != "" {
			name += "." + kind.Group
		}
		_, err = fmt.Fprintf(w, "%s/%s\n", name, meta.GetName())
		return err
	}
	is, ok := object.(runtime.Object)
	switch {
	case !ok:
		return fmt.Errorf("a %T has no name", object)
	case meta.IsListType(is):
		return meta.EachListItem(is, printName)
	default:
		return printName(is)
	}
}

// printPath writes the result of a JSONPath template, as kubectl does.
func printPath(w io.Writer, object any, template string) error {
	path := jsonpath.New("output").AllowMissingKeys(true)
	if err := path.Parse(template); err != nil {
		return usage("-o jsonpath: %w", err)
	}
	data, err := json.Marshal(object)
	if err != nil {
		return err
	}
	var content any
	if err := json.Unmarshal(data, &content); err != nil {
		return err
	}
	if err := path.Execute(w, content); err != nil {
		return usage("-o jsonpath: %w", err)
	}
	_, err = fmt.Fprintln(w)
	return err
}

// table is a header and rows with the same number of cells.
type table struct {
	header []string
	rows   [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) write(w io.Writer) error { return t.writeRows(w, true) }

// writeRows writes the rows, and the header if it is requested.
func (t *table) writeRows(w io.Writer, header bool) error {
	var text strings.Builder
	columns := tabwriter.NewWriter(&text, 0, 8, 3, ' ', 0)
	rows := t.rows
	if header {
		rows = append([][]string{t.header}, rows...)
	}
	for _, row := range rows {
		for i, cell := range row {
			row[i] = strings.Join(strings.Fields(cell), " ")
			if cell == "" {
				row[i] = "-"
			}
		}
		fmt.Fprintln(columns, strings.Join(row, "\t"))
	}
	if err := columns.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// age returns the time since the creation of an object, as kubectl prints it.
func age(of metav1.Time, now time.Time) string {
	if of.IsZero() {
		return "-"
	}
	return duration.HumanDuration(now.Sub(of.Time))
}

// until returns the time until an end, "never" for nil, or "ended" for an end in the past.
func until(end *metav1.Time, now time.Time) string {
	switch {
	case end == nil:
		return "never"
	case !end.After(now):
		return "ended"
	default:
		return "in " + duration.HumanDuration(end.Sub(now))
	}
}
