package testkit

import "os"

// Exhaustive reports whether models are walked completely, which takes minutes: MUSTER_MODEL=full, as in
// `.ci/run models` and `.ci/run crashes`.
// Otherwise tests walk a part that finds most defects.
func Exhaustive() bool { return os.Getenv("MUSTER_MODEL") == "full" }
