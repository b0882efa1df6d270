// etcd and the two tools of its image, as upstream's own mains do it.
package main

import (
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/etcdctl/v3/ctlv3"
	"go.etcd.io/etcd/etcdutl/v3/etcdutl"
	"go.etcd.io/etcd/server/v3/etcdmain"
)

// ctlv3 lets all commands of the process be abbreviated; kubectl's can't be.
func init() { cobra.EnablePrefixMatching = false }

func etcd() int {
	etcdmain.Main(os.Args)
	return 0
}

func etcdctl() int {
	ctlv3.MustStart()
	return 0
}

// etcdutl has its root command in package main, so this is one with the command that is needed here.
func etcdutlSnapshot() int {
	root := &cobra.Command{Use: "etcdutl", SilenceUsage: true}
	root.PersistentFlags().StringVarP(&etcdutl.OutputFormat, "write-out", "w", "simple", "fields, json, protobuf, simple or table")
	root.AddCommand(etcdutl.NewSnapshotCommand())
	if root.Execute() != nil { // it has said why
		return 1
	}
	return 0
}
