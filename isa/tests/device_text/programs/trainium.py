import nki.isa as nisa
import nki.language as nl
sbuf_f32 = nl.ndarray((128, 24576), dtype=nl.float32, buffer=nl.sbuf)
sbuf_bf16 = nl.ndarray((128, 16384), dtype=nl.bfloat16, buffer=nl.sbuf)
sbuf_f16 = nl.ndarray((128, 8192), dtype=nl.float16, buffer=nl.sbuf)
sbuf_s32 = nl.ndarray((128, 8192), dtype=nl.int32, buffer=nl.sbuf)
sbuf_s8 = nl.ndarray((128, 8192), dtype=nl.int8, buffer=nl.sbuf)
sbuf_pred = nl.ndarray((128, 8192), dtype=nl.uint8, buffer=nl.sbuf)
psum = nl.ndarray((128, 4096), dtype=nl.float32, buffer=nl.psum)
nisa.dma_copy(dst=sbuf_f32[nl.ds(0, 128), nl.ds(640, 512)],
    src=operand1.ap(pattern=[[512, 128], [1, 512]], offset=0, dtype=nl.float32))
for i1 in nl.sequential_range(2):
    nisa.dma_copy(dst=sbuf_f32[nl.ds(0, 128), nl.ds(0, 128)],
        src=operand0.ap(pattern=[[1, 128], [256, 128]], offset=i1*32768, dtype=nl.float32))
    nisa.nc_matmul(dst=psum[nl.ds(0, 128), nl.ds(0, 512)], accumulate=False,
        stationary=sbuf_f32[nl.ds(0, 128), nl.ds(0, 128)],
        moving=sbuf_f32[nl.ds(0, 128), nl.ds(640, 512)])
    nisa.dma_copy(dst=sbuf_f32[nl.ds(0, 128), nl.ds(0, 128)],
        src=operand0.ap(pattern=[[1, 128], [256, 128]], offset=(i1*32768 + 128), dtype=nl.float32))
    nisa.dma_copy(dst=sbuf_f32[nl.ds(0, 128), nl.ds(128, 512)],
        src=operand1.ap(pattern=[[512, 128], [1, 512]], offset=65536, dtype=nl.float32))
    nisa.nc_matmul(dst=psum[nl.ds(0, 128), nl.ds(0, 512)], accumulate=True,
        stationary=sbuf_f32[nl.ds(0, 128), nl.ds(0, 128)],
        moving=sbuf_f32[nl.ds(0, 128), nl.ds(128, 512)])
    nisa.tensor_copy(dst=sbuf_f32[nl.ds(0, 128), nl.ds(0, 512)],
        src=psum[nl.ds(0, 128), nl.ds(0, 512)], engine=nisa.engine.vector)
    nisa.dma_copy(dst=result0.ap(pattern=[[512, 128], [1, 512]], offset=i1*65536, dtype=nl.float32),
        src=sbuf_f32[nl.ds(0, 128), nl.ds(0, 512)])
nisa.dma_copy(dst=sbuf_f32[nl.ds(0, 128), nl.ds(0, 44)],
    src=operand0.ap(pattern=[[1, 128], [256, 44]], offset=65536, dtype=nl.float32))
nisa.dma_copy(dst=sbuf_f32[nl.ds(0, 128), nl.ds(44, 512)],
    src=operand1.ap(pattern=[[512, 128], [1, 512]], offset=0, dtype=nl.float32))
nisa.nc_matmul(dst=psum[nl.ds(0, 44), nl.ds(0, 512)], accumulate=False,
    stationary=sbuf_f32[nl.ds(0, 128), nl.ds(0, 44)],
    moving=sbuf_f32[nl.ds(0, 128), nl.ds(44, 512)])
nisa.dma_copy(dst=sbuf_f32[nl.ds(0, 128), nl.ds(0, 44)],
    src=operand0.ap(pattern=[[1, 128], [256, 44]], offset=65664, dtype=nl.float32))
nisa.dma_copy(dst=sbuf_f32[nl.ds(0, 128), nl.ds(44, 512)],
    src=operand1.ap(pattern=[[512, 128], [1, 512]], offset=65536, dtype=nl.float32))
nisa.nc_matmul(dst=psum[nl.ds(0, 44), nl.ds(0, 512)], accumulate=True,
    stationary=sbuf_f32[nl.ds(0, 128), nl.ds(0, 44)],
    moving=sbuf_f32[nl.ds(0, 128), nl.ds(44, 512)])
nisa.tensor_copy(dst=sbuf_f32[nl.ds(0, 44), nl.ds(0, 512)],
    src=psum[nl.ds(0, 44), nl.ds(0, 512)], engine=nisa.engine.vector)
nisa.dma_copy(dst=result0.ap(pattern=[[512, 44], [1, 512]], offset=131072, dtype=nl.float32),
    src=sbuf_f32[nl.ds(0, 44), nl.ds(0, 512)])
