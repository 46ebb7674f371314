package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func (a *app) versionCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "version", Short: "Show the version of this program", Args: cobra.NoArgs}
	format := outputFlag(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		version := "unknown"
		if build, known := debug.ReadBuildInfo(); known {
			version = build.Main.Version
		}
		rows := table{header: []string{"VERSION", "GO", "PLATFORM"}}
		platform := runtime.GOOS + "/" + runtime.GOARCH
		rows.add(version, runtime.Version(), platform)
		return format.print(a.out, map[string]string{"version": version, "go": runtime.Version(), "platform": platform}, rows)
	}
	return cmd
}
