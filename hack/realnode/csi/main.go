// Command csi is the CSI driver of a test node: a volume is a folder, and a snapshot is a copy of one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

func main() {
	name := flag.String("name", "folders.vsyncer.dev", "name of the driver")
	node := flag.String("node", "", "name of the node")
	folder := flag.String("folder", "", "folder of the volumes and snapshots")
	socket := flag.String("socket", "", "socket of the driver")
	registry := flag.String("registry", "", "folder in which the kubelet looks for drivers")
	flag.Parse()

	driver := &driver{name: *name, node: *node, folder: *folder}
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, driver)
	csi.RegisterControllerServer(server, driver)
	csi.RegisterNodeServer(server, driver)
	registrar := grpc.NewServer()
	registration.RegisterRegistrationServer(registrar, &introduction{name: *name, socket: *socket})

	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	go serve(server, listen(*socket))
	// The kubelet calls the driver as soon as it sees this socket, and forgets it when the socket goes.
	go serve(registrar, listen(filepath.Join(*registry, *name+"-reg.sock")))
	<-end
	registrar.Stop()
	server.Stop()
}

// listen makes a socket in place of one that an earlier process may have left.
func listen(socket string) net.Listener {
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		log.Fatal(err)
	}
	return listener
}

// serve answers until the server is stopped, which removes the socket.
func serve(server *grpc.Server, listener net.Listener) {
	if err := server.Serve(listener); err != nil {
		log.Fatal(err)
	}
}

// introduction introduces the driver to the kubelet.
type introduction struct {
	registration.UnimplementedRegistrationServer
	name, socket string
}

func (r *introduction) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type:              registration.CSIPlugin,
		Name:              r.name,
		Endpoint:          r.socket,
		SupportedVersions: []string{"1.0.0"},
	}, nil
}

func (r *introduction) NotifyRegistrationStatus(
	_ context.Context, status *registration.RegistrationStatus,
) (*registration.RegistrationStatusResponse, error) {
	if !status.PluginRegistered {
		log.Fatalf("the kubelet refuses the driver: %s", status.Error)
	}
	return &registration.RegistrationStatusResponse{}, nil
}

// driver keeps each volume and each snapshot in a folder with its data and its size in bytes.
type driver struct {
	csi.UnimplementedControllerServer
	csi.UnimplementedIdentityServer
	csi.UnimplementedNodeServer
	name, node, folder string
}

// path returns the folder of a volume or snapshot.
func (d *driver) path(kind, id string) (string, error) {
	if id == "" || strings.ContainsAny(id, "/") || strings.HasPrefix(id, ".") {
		return "", status.Errorf(codes.InvalidArgument, "%q is no name of one of the %s", id, kind)
	}
	return filepath.Join(d.folder, kind, id), nil
}

// provide makes a volume or snapshot with a copy of the data of another one, or an empty one if from is "".
// One that is there already stays as it is.
func provide(path, from string, size int64) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	// It gets its name once it is whole.
	unfinished := filepath.Join(filepath.Dir(path), "."+filepath.Base(path))
	if err := os.RemoveAll(unfinished); err != nil {
		return err
	}
	data := filepath.Join(unfinished, "data")
	if err := os.MkdirAll(data, 0o777); err != nil {
		return err
	}
	if err := os.Chmod(data, 0o777); err != nil {
		return err
	}
	if from != "" {
		if out, err := exec.Command("cp", "-a", filepath.Join(from, "data")+"/.", data).CombinedOutput(); err != nil {
			return fmt.Errorf("copy %s: %s", from, out)
		}
	}
	if err := os.WriteFile(filepath.Join(unfinished, "size"), []byte(strconv.FormatInt(size, 10)), 0o644); err != nil {
		return err
	}
	return os.Rename(unfinished, path)
}

// sizeOf returns the size of a volume or snapshot in bytes; an error with NotFound if there is none.
func sizeOf(path string) (int64, error) {
	text, err := os.ReadFile(filepath.Join(path, "size"))
	if err != nil {
		return 0, status.Errorf(codes.NotFound, "there is no %s", path)
	}
	return strconv.ParseInt(string(text), 10, 64)
}

// -- identity

func (d *driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: d.name, VendorVersion: "1"}, nil
}

func (d *driver) GetPluginCapabilities(
	context.Context, *csi.GetPluginCapabilitiesRequest,
) (*csi.GetPluginCapabilitiesResponse, error) {
	service := &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE}
	capability := &csi.PluginCapability{Type: &csi.PluginCapability_Service_{Service: service}}
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{capability}}, nil
}

func (d *driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

// -- controller

func (d *driver) ControllerGetCapabilities(
	context.Context, *csi.ControllerGetCapabilitiesRequest,
) (*csi.ControllerGetCapabilitiesResponse, error) {
	var found []*csi.ControllerServiceCapability
	for _, each := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
		csi.ControllerServiceCapability_RPC_CLONE_VOLUME,
	} {
		rpc := &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: each}}
		found = append(found, &csi.ControllerServiceCapability{Type: rpc})
	}
	return &csi.ControllerGetCapabilitiesResponse{Capabilities: found}, nil
}

func (d *driver) ValidateVolumeCapabilities(
	_ context.Context, request *csi.ValidateVolumeCapabilitiesRequest,
) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	confirmed := &csi.ValidateVolumeCapabilitiesResponse_Confirmed{VolumeCapabilities: request.VolumeCapabilities}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: confirmed}, nil
}

func (d *driver) CreateVolume(_ context.Context, request *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	path, err := d.path("volumes", request.Name)
	if err != nil {
		return nil, err
	}
	from := ""
	if snapshot := request.GetVolumeContentSource().GetSnapshot(); snapshot != nil {
		from, err = d.path("snapshots", snapshot.SnapshotId)
	} else if volume := request.GetVolumeContentSource().GetVolume(); volume != nil {
		from, err = d.path("volumes", volume.VolumeId)
	}
	if err != nil {
		return nil, err
	}
	if from != "" {
		if _, err := sizeOf(from); err != nil {
			return nil, err
		}
	}
	size := request.GetCapacityRange().GetRequiredBytes()
	if err := provide(path, from, size); err != nil {
		return nil, err
	}
	made := &csi.Volume{VolumeId: request.Name, CapacityBytes: size, ContentSource: request.VolumeContentSource}
	return &csi.CreateVolumeResponse{Volume: made}, nil
}

func (d *driver) DeleteVolume(_ context.Context, request *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	path, err := d.path("volumes", request.VolumeId)
	if err != nil {
		return nil, err
	}
	return &csi.DeleteVolumeResponse{}, os.RemoveAll(path)
}

func (d *driver) CreateSnapshot(
	_ context.Context, request *csi.CreateSnapshotRequest,
) (*csi.CreateSnapshotResponse, error) {
	path, err := d.path("snapshots", request.Name)
	if err != nil {
		return nil, err
	}
	from, err := d.path("volumes", request.SourceVolumeId)
	if err != nil {
		return nil, err
	}
	size, err := sizeOf(from)
	if err != nil {
		return nil, err
	}
	if err := provide(path, from, size); err != nil {
		return nil, err
	}
	found, err := os.Stat(filepath.Join(path, "size"))
	if err != nil {
		return nil, err
	}
	return &csi.CreateSnapshotResponse{Snapshot: &csi.Snapshot{
		SnapshotId:     request.Name,
		SourceVolumeId: request.SourceVolumeId,
		SizeBytes:      size,
		CreationTime:   timestamppb.New(found.ModTime()),
		ReadyToUse:     true,
	}}, nil
}

func (d *driver) DeleteSnapshot(
	_ context.Context, request *csi.DeleteSnapshotRequest,
) (*csi.DeleteSnapshotResponse, error) {
	path, err := d.path("snapshots", request.SnapshotId)
	if err != nil {
		return nil, err
	}
	return &csi.DeleteSnapshotResponse{}, os.RemoveAll(path)
}

// -- node

func (d *driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: d.node}, nil
}

func (d *driver) NodeGetCapabilities(
	context.Context, *csi.NodeGetCapabilitiesRequest,
) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

func (d *driver) NodePublishVolume(
	_ context.Context, request *csi.NodePublishVolumeRequest,
) (*csi.NodePublishVolumeResponse, error) {
	path, err := d.path("volumes", request.VolumeId)
	if err != nil {
		return nil, err
	}
	if _, err := sizeOf(path); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(request.TargetPath, 0o750); err != nil {
		return nil, err
	}
	data, err := os.Stat(filepath.Join(path, "data"))
	if err != nil {
		return nil, err
	}
	if target, err := os.Stat(request.TargetPath); err != nil || os.SameFile(data, target) {
		return &csi.NodePublishVolumeResponse{}, err
	}
	if err := syscall.Mount(filepath.Join(path, "data"), request.TargetPath, "", syscall.MS_BIND, ""); err != nil {
		return nil, err
	}
	if request.Readonly {
		flags := uintptr(syscall.MS_BIND | syscall.MS_REMOUNT | syscall.MS_RDONLY)
		if err := syscall.Mount("", request.TargetPath, "", flags, ""); err != nil {
			return nil, err
		}
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func (d *driver) NodeUnpublishVolume(
	_ context.Context, request *csi.NodeUnpublishVolumeRequest,
) (*csi.NodeUnpublishVolumeResponse, error) {
	// EINVAL: nothing is mounted there.
	err := syscall.Unmount(request.TargetPath, 0)
	if err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := os.Remove(request.TargetPath); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}
