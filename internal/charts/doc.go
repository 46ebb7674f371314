// Package charts tests the Helm charts in deploy/charts with the packages of Helm: lint, values, templates, and
// installations on real control planes. The programs run as processes with the ServiceAccounts, arguments and
// environment of the rendered Deployments.
package charts
