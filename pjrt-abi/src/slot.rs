//! The function slots of `PJRT_Api`: their order, their names, and the size of the argument struct that
//! each one takes. It knows nothing of what the functions do.
//!
//! Order and names: PJRT C API 0.115. Sizes are the header's `<name>_Args_STRUCT_SIZE`, that is without
//! tail padding; they are the sizes against which an implementation of 0.115 checks its callers.

/// Hands the slot table to the macro `$apply`, as `(Variant, "C name", size of the argument struct)`.
///
/// The only place where the table is written down: the enum, the size table and the plugin's forwarding
/// functions all grow from it.
#[macro_export]
macro_rules! for_each_slot {
    ($apply:ident) => {
        $apply! {
            (ErrorDestroy, "PJRT_Error_Destroy", 24),
            (ErrorMessage, "PJRT_Error_Message", 40),
            (ErrorGetCode, "PJRT_Error_GetCode", 28),
            (PluginInitialize, "PJRT_Plugin_Initialize", 16),
            (PluginAttributes, "PJRT_Plugin_Attributes", 32),
            (EventDestroy, "PJRT_Event_Destroy", 24),
            (EventIsReady, "PJRT_Event_IsReady", 25),
            (EventError, "PJRT_Event_Error", 24),
            (EventAwait, "PJRT_Event_Await", 24),
            (EventOnReady, "PJRT_Event_OnReady", 40),
            (ClientCreate, "PJRT_Client_Create", 88),
            (ClientDestroy, "PJRT_Client_Destroy", 24),
            (ClientPlatformName, "PJRT_Client_PlatformName", 40),
            (ClientProcessIndex, "PJRT_Client_ProcessIndex", 28),
            (ClientPlatformVersion, "PJRT_Client_PlatformVersion", 40),
            (ClientDevices, "PJRT_Client_Devices", 40),
            (ClientAddressableDevices, "PJRT_Client_AddressableDevices", 40),
            (ClientLookupDevice, "PJRT_Client_LookupDevice", 40),
            (ClientLookupAddressableDevice, "PJRT_Client_LookupAddressableDevice", 40),
            (ClientAddressableMemories, "PJRT_Client_AddressableMemories", 40),
            (ClientCompile, "PJRT_Client_Compile", 56),
            (ClientDefaultDeviceAssignment, "PJRT_Client_DefaultDeviceAssignment", 48),
            (ClientBufferFromHostBuffer, "PJRT_Client_BufferFromHostBuffer", 120),
            (DeviceDescriptionId, "PJRT_DeviceDescription_Id", 28),
            (DeviceDescriptionProcessIndex, "PJRT_DeviceDescription_ProcessIndex", 28),
            (DeviceDescriptionAttributes, "PJRT_DeviceDescription_Attributes", 40),
            (DeviceDescriptionKind, "PJRT_DeviceDescription_Kind", 40),
            (DeviceDescriptionDebugString, "PJRT_DeviceDescription_DebugString", 40),
            (DeviceDescriptionToString, "PJRT_DeviceDescription_ToString", 40),
            (DeviceGetDescription, "PJRT_Device_GetDescription", 32),
            (DeviceIsAddressable, "PJRT_Device_IsAddressable", 25),
            (DeviceLocalHardwareId, "PJRT_Device_LocalHardwareId", 28),
            (DeviceAddressableMemories, "PJRT_Device_AddressableMemories", 40),
            (DeviceDefaultMemory, "PJRT_Device_DefaultMemory", 32),
            (DeviceMemoryStats, "PJRT_Device_MemoryStats", 185),
            (MemoryId, "PJRT_Memory_Id", 28),
            (MemoryKind, "PJRT_Memory_Kind", 40),
            (MemoryDebugString, "PJRT_Memory_DebugString", 40),
            (MemoryToString, "PJRT_Memory_ToString", 40),
            (MemoryAddressableByDevices, "PJRT_Memory_AddressableByDevices", 40),
            (ExecutableDestroy, "PJRT_Executable_Destroy", 24),
            (ExecutableName, "PJRT_Executable_Name", 40),
            (ExecutableNumReplicas, "PJRT_Executable_NumReplicas", 32),
            (ExecutableNumPartitions, "PJRT_Executable_NumPartitions", 32),
            (ExecutableNumOutputs, "PJRT_Executable_NumOutputs", 32),
            (ExecutableSizeOfGeneratedCodeInBytes, "PJRT_Executable_SizeOfGeneratedCodeInBytes", 32),
            (ExecutableGetCostAnalysis, "PJRT_Executable_GetCostAnalysis", 40),
            (ExecutableOutputMemoryKinds, "PJRT_Executable_OutputMemoryKinds", 48),
            (ExecutableOptimizedProgram, "PJRT_Executable_OptimizedProgram", 32),
            (ExecutableSerialize, "PJRT_Executable_Serialize", 56),
            (LoadedExecutableDestroy, "PJRT_LoadedExecutable_Destroy", 24),
            (LoadedExecutableGetExecutable, "PJRT_LoadedExecutable_GetExecutable", 32),
            (LoadedExecutableAddressableDevices, "PJRT_LoadedExecutable_AddressableDevices", 40),
            (LoadedExecutableDelete, "PJRT_LoadedExecutable_Delete", 24),
            (LoadedExecutableIsDeleted, "PJRT_LoadedExecutable_IsDeleted", 25),
            (LoadedExecutableExecute, "PJRT_LoadedExecutable_Execute", 80),
            (ExecutableDeserializeAndLoad, "PJRT_Executable_DeserializeAndLoad", 64),
            (LoadedExecutableFingerprint, "PJRT_LoadedExecutable_Fingerprint", 40),
            (BufferDestroy, "PJRT_Buffer_Destroy", 24),
            (BufferElementType, "PJRT_Buffer_ElementType", 28),
            (BufferDimensions, "PJRT_Buffer_Dimensions", 40),
            (BufferUnpaddedDimensions, "PJRT_Buffer_UnpaddedDimensions", 40),
            (BufferDynamicDimensionIndices, "PJRT_Buffer_DynamicDimensionIndices", 40),
            (BufferGetMemoryLayout, "PJRT_Buffer_GetMemoryLayout", 104),
            (BufferOnDeviceSizeInBytes, "PJRT_Buffer_OnDeviceSizeInBytes", 32),
            (BufferDevice, "PJRT_Buffer_Device", 32),
            (BufferMemory, "PJRT_Buffer_Memory", 32),
            (BufferDelete, "PJRT_Buffer_Delete", 24),
            (BufferIsDeleted, "PJRT_Buffer_IsDeleted", 25),
            (BufferCopyToDevice, "PJRT_Buffer_CopyToDevice", 40),
            (BufferToHostBuffer, "PJRT_Buffer_ToHostBuffer", 56),
            (BufferIsOnCpu, "PJRT_Buffer_IsOnCpu", 25),
            (BufferReadyEvent, "PJRT_Buffer_ReadyEvent", 32),
            (BufferUnsafePointer, "PJRT_Buffer_UnsafePointer", 32),
            (BufferIncreaseExternalReferenceCount, "PJRT_Buffer_IncreaseExternalReferenceCount", 24),
            (BufferDecreaseExternalReferenceCount, "PJRT_Buffer_DecreaseExternalReferenceCount", 24),
            (BufferOpaqueDeviceMemoryDataPointer, "PJRT_Buffer_OpaqueDeviceMemoryDataPointer", 32),
            (CopyToDeviceStreamDestroy, "PJRT_CopyToDeviceStream_Destroy", 24),
            (CopyToDeviceStreamAddChunk, "PJRT_CopyToDeviceStream_AddChunk", 40),
            (CopyToDeviceStreamTotalBytes, "PJRT_CopyToDeviceStream_TotalBytes", 32),
            (CopyToDeviceStreamGranuleSize, "PJRT_CopyToDeviceStream_GranuleSize", 32),
            (CopyToDeviceStreamCurrentBytes, "PJRT_CopyToDeviceStream_CurrentBytes", 32),
            (TopologyDescriptionCreate, "PJRT_TopologyDescription_Create", 56),
            (TopologyDescriptionDestroy, "PJRT_TopologyDescription_Destroy", 24),
            (TopologyDescriptionPlatformName, "PJRT_TopologyDescription_PlatformName", 40),
            (TopologyDescriptionPlatformVersion, "PJRT_TopologyDescription_PlatformVersion", 40),
            (TopologyDescriptionGetDeviceDescriptions, "PJRT_TopologyDescription_GetDeviceDescriptions", 40),
            (TopologyDescriptionSerialize, "PJRT_TopologyDescription_Serialize", 56),
            (TopologyDescriptionAttributes, "PJRT_TopologyDescription_Attributes", 40),
            (Compile, "PJRT_Compile", 64),
            (ExecutableOutputElementTypes, "PJRT_Executable_OutputElementTypes", 40),
            (ExecutableOutputDimensions, "PJRT_Executable_OutputDimensions", 48),
            (BufferCopyToMemory, "PJRT_Buffer_CopyToMemory", 40),
            (ClientCreateViewOfDeviceBuffer, "PJRT_Client_CreateViewOfDeviceBuffer", 104),
            (ExecutableFingerprint, "PJRT_Executable_Fingerprint", 40),
            (ClientTopologyDescription, "PJRT_Client_TopologyDescription", 32),
            (ExecutableGetCompiledMemoryStats, "PJRT_Executable_GetCompiledMemoryStats", 112),
            (MemoryKindId, "PJRT_Memory_Kind_Id", 28),
            (ExecuteContextCreate, "PJRT_ExecuteContext_Create", 24),
            (ExecuteContextDestroy, "PJRT_ExecuteContext_Destroy", 24),
            (BufferCopyRawToHost, "PJRT_Buffer_CopyRawToHost", 56),
            (AsyncHostToDeviceTransferManagerDestroy, "PJRT_AsyncHostToDeviceTransferManager_Destroy", 24),
            (AsyncHostToDeviceTransferManagerTransferData, "PJRT_AsyncHostToDeviceTransferManager_TransferData", 72),
            (ClientCreateBuffersForAsyncHostToDevice, "PJRT_Client_CreateBuffersForAsyncHostToDevice", 72),
            (AsyncHostToDeviceTransferManagerRetrieveBuffer, "PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer", 40),
            (AsyncHostToDeviceTransferManagerDevice, "PJRT_AsyncHostToDeviceTransferManager_Device", 32),
            (AsyncHostToDeviceTransferManagerBufferCount, "PJRT_AsyncHostToDeviceTransferManager_BufferCount", 32),
            (AsyncHostToDeviceTransferManagerBufferSize, "PJRT_AsyncHostToDeviceTransferManager_BufferSize", 40),
            (AsyncHostToDeviceTransferManagerSetBufferError, "PJRT_AsyncHostToDeviceTransferManager_SetBufferError", 48),
            (AsyncHostToDeviceTransferManagerAddMetadata, "PJRT_AsyncHostToDeviceTransferManager_AddMetadata", 40),
            (ClientDmaMap, "PJRT_Client_DmaMap", 40),
            (ClientDmaUnmap, "PJRT_Client_DmaUnmap", 32),
            (ClientCreateUninitializedBuffer, "PJRT_Client_CreateUninitializedBuffer", 80),
            (ClientUpdateGlobalProcessInfo, "PJRT_Client_UpdateGlobalProcessInfo", 40),
            (TopologyDescriptionDeserialize, "PJRT_TopologyDescription_Deserialize", 40),
            (ClientCreateAliasBuffer, "PJRT_Client_CreateAliasBuffer", 80),
            (ClientFulfillAliasBuffer, "PJRT_Client_FulfillAliasBuffer", 64),
            (LoadedExecutableGetDeviceAssignment, "PJRT_LoadedExecutable_GetDeviceAssignment", 56),
            (ClientCreateErrorBuffer, "PJRT_Client_CreateErrorBuffer", 112),
            (AsyncHostToDeviceTransferManagerTransferLiteral, "PJRT_AsyncHostToDeviceTransferManager_TransferLiteral", 80),
            (BufferCopyRawToHostFuture, "PJRT_Buffer_CopyRawToHostFuture", 64),
            (DevicePoisonExecution, "PJRT_Device_PoisonExecution", 72),
            (DeviceCreateAsyncTrackingEvent, "PJRT_Device_CreateAsyncTrackingEvent", 48),
            (AsyncTrackingEventDestroy, "PJRT_AsyncTrackingEvent_Destroy", 24),
            (ExecutableGetCompileOptions, "PJRT_Executable_GetCompileOptions", 56),
            (BufferDonateWithControlDependency, "PJRT_Buffer_DonateWithControlDependency", 48),
            (EventCreate, "PJRT_Event_Create", 24),
            (EventSet, "PJRT_Event_Set", 48),
            (DeviceGetAttributes, "PJRT_Device_GetAttributes", 56),
            (ClientLoad, "PJRT_Client_Load", 56),
            (LoadedExecutableAddressableDeviceLogicalIds, "PJRT_LoadedExecutable_AddressableDeviceLogicalIds", 40),
            (BufferBitcast, "PJRT_Buffer_Bitcast", 64),
            (ErrorForEachPayload, "PJRT_Error_ForEachPayload", 40),
            (TopologyDescriptionFingerprint, "PJRT_TopologyDescription_Fingerprint", 32),
            (ExecutableParameterMemoryKinds, "PJRT_Executable_ParameterMemoryKinds", 48),
            (DeviceClearMemoryStats, "PJRT_Device_ClearMemoryStats", 24),
            (TopologyDescriptionMakeCanonicalShapeForMemorySpace, "PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace", 88),
            (TopologyDescriptionGetMemorySpaceKindIds, "PJRT_TopologyDescription_GetMemorySpaceKindIds", 40),
        }
    };
}

macro_rules! define_slots {
    ($(($variant:ident, $name:literal, $size:literal),)*) => {
        /// One function slot of `PJRT_Api`; the discriminant is its position in the table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(usize)]
        pub enum Slot {
            $(#[doc = $name] $variant,)*
        }

        impl Slot {
            /// Every slot, in table order.
            pub const ALL: &'static [Slot] = &[$(Slot::$variant),*];

            /// The function's name in the C header.
            pub const fn name(self) -> &'static str {
                match self { $(Slot::$variant => $name,)* }
            }

            /// The size in bytes of the function's argument struct in API 0.115.
            pub const fn args_size(self) -> usize {
                match self { $(Slot::$variant => $size,)* }
            }
        }
    };
}

for_each_slot!(define_slots);

impl Slot {
    /// Number of slots in the table.
    pub const COUNT: usize = Slot::ALL.len();

    /// The position in the table.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether the function returns nothing. All others return a `PJRT_Error*`, null for success.
    pub const fn returns_void(self) -> bool {
        matches!(self, Slot::ErrorDestroy | Slot::ErrorMessage)
    }
}
