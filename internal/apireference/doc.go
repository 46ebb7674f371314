// Package apireference generates docs/api.md from the CustomResourceDefinitions. Its test fails if the file is not
// current.
package apireference
