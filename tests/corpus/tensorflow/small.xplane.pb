
c/device:GPU:0,Stream #14(Kernel)è"À–±€‰z""gemm*correlation_id
\	/host:CPUpythonè"À„=€‰z""cuLaunchKernel*correlation_id"node0