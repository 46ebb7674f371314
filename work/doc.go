// Package work will apply what the hub wants on a member, notice drift, and take it back.
//
// There is nothing in it yet; membership came first. It will hold back a leave by a membership.LeaveGate.
package work
