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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/yaml"
)

// output is the flag -o.
type output string

var outputs = []string{"table", "json", "yaml"}

func outputFlag(cmd *cobra.Command) *output {
	o := output("table")
	cmd.Flags().VarP(&o, "output", "o", strings.Join(outputs, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(outputs, cobra.ShellCompDirectiveNoFileComp))
	return &o
}

func (o *output) String() string { return string(*o) }
func (o *output) Type() string   { return "FORMAT" }
func (o *output) Set(value string) error {
	if !slices.Contains(outputs, value) {
		return fmt.Errorf("must be one of %s", strings.Join(outputs, ", "))
	}
	*o = output(value)
	return nil
}

// print writes an object as it is, or its table.
func (o *output) print(w io.Writer, object any, rows table) error {
	switch *o {
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
	default:
		return rows.write(w)
	}
}

// table has a header and rows of as many cells.
type table struct {
	header []string
	rows   [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) write(w io.Writer) error {
	var text strings.Builder
	columns := tabwriter.NewWriter(&text, 0, 8, 3, ' ', 0)
	for _, row := range append([][]string{t.header}, t.rows...) {
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

// age is how long ago something was made, as kubectl says it.
func age(of metav1.Time, now time.Time) string {
	if of.IsZero() {
		return "-"
	}
	return duration.HumanDuration(now.Sub(of.Time))
}

// until is when something ends.
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
